// An HTTP server in the provider's place whose responses a test writes itself. Records the requests exactly as received.

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'

type Teardown = { teardown(fn: () => unknown): void }

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
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: secure ? `https://localhost:${port}` : `http://127.0.0.1:${port}`, requests }
}
