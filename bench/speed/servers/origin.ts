// The plainest server: node:http with one ready body for every request, or node:https with a certificate and its key. With a
// file of headers it is the origin of the caching contenders; without one it is the reference that everything is measured against.

import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

const [bodyFile = '', headersFile, cert, key] = process.argv.slice(2)
const body = readFileSync(bodyFile)
const headers: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': String(body.length),
  ...(headersFile ? JSON.parse(readFileSync(headersFile, 'utf8')) : {}),
}

const answer: RequestListener = (_request, response) => {
  response.writeHead(200, headers)
  response.end(body)
}
const server =
  cert && key
    ? createTlsServer({ cert: readFileSync(cert), key: readFileSync(key), minVersion: 'TLSv1.3' }, answer)
    : createServer(answer)
// As long as the gateway does.
server.keepAliveTimeout = 75_000
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(
    `${JSON.stringify({ msg: 'listening', listener: 'api', url: `${cert ? 'https' : 'http'}://127.0.0.1:${port}` })}\n`,
  )
})
