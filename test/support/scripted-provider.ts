// An HTTP server whose responses a test writes itself, in the place of the provider or another service. Records the
// requests exactly as received.

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { listenOn } from './listening.ts'
import type { Teardown } from './teardown.ts'

export type ScriptedProvider = {
  url: string
  /** Every request so far: method, raw request target, headers. */
  requests: { method: string; target: string; headers: IncomingMessage['headers'] }[]
}

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url))

/** @param secure serves HTTPS with a self-signed certificate for localhost */
export const startScriptedProvider = async (
  t: Teardown,
  answer: RequestListener = (_request, response) => void response.end('{}'),
  { secure = false } = {},
): Promise<ScriptedProvider> => {
  const requests: ScriptedProvider['requests'] = []
  const listener: RequestListener = (request, response) => {
    requests.push({ method: request.method ?? '', target: request.url ?? '', headers: request.headers })
    answer(request, response)
  }
  const server = secure
    ? createSecureServer({ cert: fixture('localhost.crt'), key: fixture('localhost.key') }, listener)
    : createServer(listener)
  const port = await listenOn(t, server)
  return { url: secure ? `https://localhost:${port}` : `http://127.0.0.1:${port}`, requests }
}
