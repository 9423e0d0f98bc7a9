// Chooses how responses over HTTP/1.1 are written: through Node's private fields, or through public API where the bytes differ.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import {
  type Chunks,
  closedLines,
  headOf,
  keptLines,
  type WithHead,
  type WriteReady,
  writeDirectly,
} from './connection.ts'

// An import would load Node's client for fetch too, a twentieth of a start.
const http = process.getBuiltinModule('node:http')

export const writeByWriteHead: WriteReady = (response, status, head, own, connection, body) => {
  if (response.headersSent) return
  response.statusCode = status
  if (response.destroyed) return
  const lines = `${head}${own.join('')}${connection}`.split('\r\n').slice(1, -2)
  response.writeHead(
    status,
    lines.flatMap(line => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon), line.slice(colon + 2)]
    }),
  )
  for (const chunk of body ?? []) response.write(chunk)
  response.end()
}

/** The direct writer where both write the same bytes, else the public one, with the reason. */
export const chooseWriter = (direct: WriteReady = writeDirectly): { write: WriteReady; fault?: string } => {
  try {
    for (const { method, status, connection, body } of samples) {
      const head = headOf(status, 'content-type: text/plain\r\ncontent-length: 4\r\n')
      const own = ['date: ', new Date(0).toUTCString(), '\r\n']
      const [one, other] = [direct, writeByWriteHead].map(write =>
        bytesOf(method, response => write(response, status, head, own, connection, body)),
      )
      if (one !== other)
        return { write: writeByWriteHead, fault: `the bytes of a ${status} to ${method} differ` }
    }
    return { write: direct }
  } catch (error) {
    return { write: writeByWriteHead, fault: String(error) }
  }
}

const kept = keptLines(1_000)
const samples: readonly { method: string; status: number; connection: string; body?: Chunks }[] = [
  { method: 'GET', status: 200, connection: kept, body: [Buffer.from('body')] },
  { method: 'GET', status: 404, connection: closedLines, body: [Buffer.from('bo'), Buffer.from('dy')] },
  { method: 'HEAD', status: 200, connection: kept, body: [Buffer.from('body')] },
  { method: 'GET', status: 304, connection: kept },
]

/** The bytes that a response writes to its connection, and whether the connection stays. */
const bytesOf = (method: string, write: (response: ServerResponse) => void): string => {
  const chunks: Buffer[] = []
  const socket = new Duplex({
    read: () => {},
    write: (chunk, _encoding, done) => {
      chunks.push(Buffer.from(chunk))
      done()
    },
  }) as Socket
  const request = Object.assign(new http.IncomingMessage(socket), {
    method,
    httpVersionMajor: 1,
    httpVersionMinor: 1,
  })
  const response = new http.ServerResponse(request)
  response.assignSocket(socket)
  write(response)
  const { _last: last } = response as WithHead
  return `${Buffer.concat(chunks).toString('latin1')}\n${last ? 'ends' : 'stays'}, ${response.writableEnded}`
}
