// How an answer gets onto the socket: whole and compressed when asked, or badly, as a mood wants it. Resolves when
// nothing more will be sent; a caller that has gone away ends it at once.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { contentTypes } from './formats.ts'
import type { Delivery, Mood } from './moods.ts'

/** What is to be sent: status, type and body. */
export type Answer = NonNullable<Mood['answer']>

const compress = promisify(gzip)
const trickleChunks = 12
const tricklePauseMs = 20

/** An exchange and the signal that its caller has gone. */
export type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly gone: AbortSignal
}

/** Sends an answer; never rejects because the caller has gone. */
export const deliver = async (exchange: Exchange, answer: Answer, delivery: Delivery): Promise<void> => {
  const { request, response, gone } = exchange
  if (gone.aborted) return
  if (delivery === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  if (delivery === 'hang') return goneFor(gone)
  const bytes = Buffer.from(answer.body)
  const headers = { 'content-type': contentTypes[answer.type], 'access-control-allow-origin': '*' }
  if (delivery === 'whole') {
    const packed = bytes.length > 0 && asksForGzip(request) ? await compress(bytes, fastest) : undefined
    const body = packed ?? bytes
    response.writeHead(answer.status, {
      ...headers,
      ...(packed ? { 'content-encoding': 'gzip' } : {}),
      'content-length': body.length,
    })
    response.end(body)
    return
  }
  response.writeHead(answer.status, { ...headers, 'content-length': bytes.length })
  if (delivery === 'stall') {
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)))
    return goneFor(gone)
  }
  const size = Math.ceil(bytes.length / trickleChunks)
  for (let from = 0; from < bytes.length && !gone.aborted; from += size) {
    response.write(bytes.subarray(from, from + size))
    await waitFor(tricklePauseMs, gone)
  }
  response.end()
}

/** Resolves after a time, or as soon as the caller has gone. */
export const waitFor = async (ms: number, gone: AbortSignal): Promise<void> => {
  if (ms > 0) await pause(ms, undefined, { signal: gone }).catch(() => {})
}

/** Resolves when the caller has gone. */
export const goneFor = async (gone: AbortSignal): Promise<void> => {
  if (gone.aborted) return
  await new Promise(resolve => gone.addEventListener('abort', resolve, { once: true }))
}

const fastest = { level: constants.Z_BEST_SPEED }

const asksForGzip = ({ headers }: IncomingMessage): boolean =>
  /(^|[\s,])(gzip|\*)\s*(;\s*q=(1|0\.\d*[1-9]))?\s*(,|$)/i.test(String(headers['accept-encoding'] ?? ''))
