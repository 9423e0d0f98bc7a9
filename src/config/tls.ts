// TLS of the API's server: the certificate, its expiry, and the key for session tickets. Without a certificate the server speaks
// plain HTTP.

import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { InputError, messageOf } from '../common/errors.ts'
import { maxFileBytes, readRegularFileSync } from '../common/regular-file.ts'
import type { Config } from './schema.ts'

/** The files of certificate, key and ticket key. Null: TLS ends elsewhere, or the gateway makes its own ticket key. */
export type TlsFiles = Omit<TlsSettings, 'http2'>

/** The files, and whether HTTP/2 is offered. */
export type TlsSettings = Config['server']['tls']

/** A chain and its key in PEM form. */
export type Certificate = { readonly cert: Buffer; readonly key: Buffer }

/** What the server is given, by the names of Node. */
export type TlsOptions = Certificate & {
  readonly ticketKeys: Buffer
  readonly sessionIdContext: string
  readonly minVersion: 'TLSv1.2'
  readonly ciphers: string
}

/** A name of 16 bytes, then the secrets of HMAC and AES, 16 bytes each. */
export const ticketKeyBytes = 48

// The same everywhere: Node's own is made of the arguments of the process, and a ticket from a process with others is refused.
const sessionIdContext = 'abohawa'

// Only forward secrecy and authenticated encryption: every client that speaks TLS 1.2 or later has one of them. Node's own list
// has modes that scanners refuse, and HTTP/2 forbids (RFC 9113, appendix A).
const ciphers = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':')

/** Undefined without a certificate. @param ownTicketKey where no file has one @throws InputError when a file can't be used */
export const tlsOptions = (files: TlsFiles, ownTicketKey: Buffer): TlsOptions | undefined => {
  const certificate = certificateOf(files)
  return (
    certificate && {
      ...certificate,
      ticketKeys: ticketKeyOf(files) ?? ownTicketKey,
      sessionIdContext,
      minVersion: 'TLSv1.2',
      ciphers,
    }
  )
}

/** The ticket key of the file; undefined without one, or without a certificate. @throws InputError when it can't be used */
export const ticketKeyOf = ({ cert, ticketKey }: TlsFiles): Buffer | undefined => {
  if (cert === null || ticketKey === null) return undefined
  const bytes = fileOf('server.tls.ticketKey', ticketKey, true)
  if (bytes.length !== ticketKeyBytes)
    throw new InputError(
      `server.tls.ticketKey must be a file of exactly ${ticketKeyBytes} random bytes (openssl rand ${ticketKeyBytes}), got ${ticketKey} with ${bytes.length.toLocaleString('en-US')} bytes`,
    )
  return bytes
}

/** Certificate and key; undefined where there are none. @throws InputError when a file can't be read or is no PEM */
export const certificateOf = ({ cert, key }: Pick<TlsFiles, 'cert' | 'key'>): Certificate | undefined => {
  if (cert === null || key === null) return undefined
  const pair = {
    cert: fileOf('server.tls.cert', cert),
    key: fileOf('server.tls.key', key),
  }
  try {
    createSecureContext(pair)
    chainOf(pair.cert)
  } catch (cause) {
    throw new InputError(
      `server.tls.cert and server.tls.key can't be used: ${cert} and ${key} are no certificate and key in PEM form that belong together (${messageOf(cause)})`,
      { cause },
    )
  }
  return pair
}

const fileOf = (name: string, path: string, isPrivate = false): Buffer => {
  try {
    return readRegularFileSync(path, maxFileBytes.pem, isPrivate)
  } catch (cause) {
    throw new InputError(`${name} is ${path}, which can't be read: ${messageOf(cause)}`, { cause })
  }
}

/** The certificates of a file in PEM in the order in which they are sent: first the server's own. @throws Error for none */
export const chainOf = (pem: Buffer): readonly [X509Certificate, ...X509Certificate[]] => {
  const [own = '', ...others] = pem.toString('latin1').match(inPem) ?? []
  return [new X509Certificate(own), ...others.map(each => new X509Certificate(each))]
}
const inPem = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[^-]+-----END \1-----/g

/** When the first certificate of the served chain expires, ms since the epoch; undefined without one. */
export const createCertificateExpiry = (
  served: () => Certificate | undefined,
): (() => number | undefined) => {
  let known: { readonly of: Certificate; readonly expiresAt: number } | undefined
  return () => {
    const certificate = served()
    if (!certificate) return undefined
    if (known?.of !== certificate) {
      // Clients refuse the whole chain from then on.
      const ends = chainOf(certificate.cert).map(({ validToDate }) => validToDate.getTime())
      known = { of: certificate, expiresAt: Math.min(...ends) }
    }
    return known.expiresAt
  }
}
