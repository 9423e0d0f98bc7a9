// A server's connections without a kernel: hands requests to Node's HTTP server as bytes, and takes a write as the
// response. Measures what this process itself spends on a request.

import type { Server } from 'node:http'
import { Duplex } from 'node:stream'

export type Wire = {
  /** Sends one request on each connection; resolves when all have a response. */
  sendOnAll(request: Buffer): Promise<void>
  /** The last response on the first connection. */
  lastAnswer(): Buffer
  close(): void
}

type Chunk = { chunk: Buffer | string; encoding: BufferEncoding }

const bytesOf = ({ chunk, encoding }: Chunk): Buffer =>
  typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk

export const openWire = (server: Server, connections: number): Wire => {
  let owed = 0
  let answered = (): void => {}
  let last: readonly Chunk[] = []
  const open = Array.from({ length: connections }, (_, i) => {
    const took = (chunks: readonly Chunk[]): void => {
      // Its bytes belong to the server again afterwards.
      if (i === 0) last = chunks.map(one => ({ ...one, chunk: Buffer.from(bytesOf(one)) }))
      owed -= 1
      if (owed === 0) answered()
    }
    const connection = new Duplex({
      decodeStrings: false,
      read: () => {},
      write: (chunk, encoding, done) => {
        took([{ chunk, encoding }])
        done()
      },
      writev: (chunks, done) => {
        took(chunks as Chunk[])
        done()
      },
    })
    server.emit('connection', connection)
    return connection
  })
  return {
    sendOnAll: request =>
      new Promise(resolve => {
        owed = connections
        answered = resolve
        for (const connection of open) connection.push(request)
      }),
    lastAnswer: () => Buffer.concat(last.map(bytesOf)),
    close: () => {
      for (const connection of open) connection.destroy()
    },
  }
}
