// The plainest server: node:http with one ready body for every request. With a file of headers it is the origin of the
// caching contenders; without one it is the reference that everything is measured against.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const [bodyFile = '', headersFile] = process.argv.slice(2)
const body = readFileSync(bodyFile)
const headers: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': String(body.length),
  ...(headersFile ? JSON.parse(readFileSync(headersFile, 'utf8')) : {}),
}

const server = createServer((_request, response) => {
  response.writeHead(200, headers)
  response.end(body)
})
// As long as Fastify and the gateway do.
server.keepAliveTimeout = 72_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(
    `${JSON.stringify({ msg: 'listening', listener: 'api', url: `http://127.0.0.1:${port}` })}\n`,
  )
})
