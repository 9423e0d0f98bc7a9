// Writes a response: complete and with gzip if accepted, or as a fault demands. Resolves when nothing more will be sent.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { Delivery, Fault } from './faults.ts'

export type Answer = NonNullable<Fault['answer']>

const contentTypes = { json: 'application/json; charset=utf-8', html: 'text/html' } as const

const compress = promisify(gzip)
const trickleChunks = 12
const tricklePauseMs = 20

export type HttpCall = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly disconnected: AbortSignal
}

/** A disconnected client is no error. */
export const deliver = async (httpCall: HttpCall, answer: Answer, delivery: Delivery): Promise<void> => {
  const { request, response, disconnected } = httpCall
  if (disconnected.aborted) return
  if (delivery === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  if (delivery === 'hang') return disconnectOf(disconnected)
  const bytes = Buffer.from(answer.body)
  const headers = { 'content-type': contentTypes[answer.type], 'access-control-allow-origin': '*' }
  if (delivery === 'whole') {
    const packed = bytes.length > 0 && acceptsGzip(request) ? await compress(bytes, fastest) : undefined
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
    return disconnectOf(disconnected)
  }
  const size = Math.ceil(bytes.length / trickleChunks)
  for (let from = 0; from < bytes.length && !disconnected.aborted; from += size) {
    response.write(bytes.subarray(from, from + size))
    await waitFor(tricklePauseMs, disconnected)
  }
  response.end()
}

/** Resolves after a time, or as soon as the client disconnects. */
export const waitFor = async (ms: number, disconnected: AbortSignal): Promise<void> => {
  if (ms > 0) await pause(ms, undefined, { signal: disconnected }).catch(() => {})
}

/** Resolves when the client disconnects. */
export const disconnectOf = async (disconnected: AbortSignal): Promise<void> => {
  if (disconnected.aborted) return
  await new Promise(resolve => disconnected.addEventListener('abort', resolve, { once: true }))
}

const fastest = { level: constants.Z_BEST_SPEED }

const acceptsGzip = ({ headers }: IncomingMessage): boolean =>
  /(^|[\s,])(gzip|\*)\s*(;\s*q=(1|0\.\d*[1-9]))?\s*(,|$)/i.test(String(headers['accept-encoding'] ?? ''))
