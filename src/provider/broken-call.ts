// Why a call to the provider broke off: whether anything was sent, and whether the provider or this machine failed.

import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { messageOf } from '../common/errors.ts'
import { excerptOf, garbled, notSent, ProviderError } from './errors.ts'

// The most characters of a library's message about a connection, which may quote a certificate.
const maxCharacters = 200
export const maxHeaderBytes = 16 * 1024

type Timeouts = {
  readonly connectTimeoutMs: number
  readonly timeoutMs: number
  readonly bodyTimeoutMs: number
  readonly totalTimeoutMs: number
}

/** A call, with its reader's work, took longer than it may. */
export const tooSlow = ({ totalTimeoutMs }: Pick<Timeouts, 'totalTimeoutMs'>): ProviderError =>
  new ProviderError('provider_timeout', `the response was not complete within ${totalTimeoutMs} ms`, {
    refused: 'too_slow',
  })

// Error codes of the system for a connection that was not established: nothing was sent.
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])

// This machine has no descriptor or memory left for a connection: the provider has not failed.
const ofThisMachine = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])

// The system call that looks up a name.
const lookUp = 'getaddrinfo'

/** The code of a failure of this machine. A look-up that finds no descriptor says that there is no such name, so one is tried. */
const ownFaultOf = ({ code = '', syscall }: NodeJS.ErrnoException): string | undefined => {
  if (ofThisMachine.has(code)) return code
  if (syscall !== lookUp) return undefined
  try {
    closeSync(openSync(devNull, 'r'))
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

/**
 * The ProviderError of a call that threw. Without a cause: the error is kept for as long as its cell fails, and the errors of a
 * parser hold what they read.
 * @param hadConnection whether its request may have been sent
 */
export const brokenOff = (
  cause: unknown,
  { connectTimeoutMs, timeoutMs, bodyTimeoutMs }: Timeouts,
  hadConnection = true,
): ProviderError => {
  if (cause instanceof ProviderError) return cause
  const { code = '', syscall } = cause as NodeJS.ErrnoException
  switch (code) {
    // Pools are closed when nothing is under way any more, never destroyed before.
    case 'UND_ERR_CLOSED':
    case 'UND_ERR_DESTROYED':
      return notSent('its connections are closed')
    case 'UND_ERR_CONNECT_TIMEOUT':
      return unreachable(`no connection to the provider within ${connectTimeoutMs} ms`)
    case 'UND_ERR_HEADERS_TIMEOUT':
      return new ProviderError('provider_timeout', `no response from the provider within ${timeoutMs} ms`)
    case 'UND_ERR_BODY_TIMEOUT':
      return new ProviderError('provider_timeout', `the provider sent no data for ${bodyTimeoutMs} ms`)
    case 'UND_ERR_HEADERS_OVERFLOW':
      return garbled('too_large', `the provider's headers are longer than ${maxHeaderBytes} bytes`)
  }
  const ownFault = ownFaultOf(cause as NodeJS.ErrnoException)
  if (ownFault !== undefined) return notSent(`this machine can't open a connection (${ownFault})`)
  if (syscall === lookUp || unconnected.has(code))
    return unreachable(`no connection to the provider: ${code}`)
  // Such as a certificate that is not trusted.
  if (!hadConnection)
    return unreachable(`no connection to the provider: ${excerptOf(messageOf(cause), maxCharacters)}`)
  // A truncated gzip body is an incomplete body like a truncated plain one.
  if (code.startsWith('Z_'))
    return new ProviderError('provider_cut_off', "the provider's zipped body can't be unzipped", {
      refused: 'damaged',
    })
  return new ProviderError(
    'provider_broke_off',
    `the connection to the provider broke: ${excerptOf(messageOf(cause), maxCharacters)}`,
  )
}
const unreachable = (sentence: string) => new ProviderError('provider_unreachable', sentence)
