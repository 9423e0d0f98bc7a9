// A gateway that speaks TLS, and HTTP/2 for it: Node's own client, and raw frames for what no client would send.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { join } from 'node:path'
import { manualClock } from './manual-clock.ts'
import { startGateway, type TestGateway } from './start-gateway.ts'
import type { Teardown } from './teardown.ts'

const fixture = (name: string) => join(import.meta.dirname, '..', 'fixtures', name)

/** An instant at which the certificate that renews the first one is valid too. */
export const renewedAt = '2026-11-23T06:00:00Z'

/** The files of a certificate for localhost. */
export const localCertificate = { cert: fixture('localhost.crt'), key: fixture('localhost.key') }

/** What a client needs to trust the gateway's certificate, which has a host name. */
export const trusting = { ca: readFileSync(localCertificate.cert), servername: 'localhost' }

export const startTlsGateway = (
  t: Teardown,
  provider: { readonly url: string },
  more: Record<string, string> = {},
  clock = manualClock(),
): Promise<TestGateway> =>
  startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
      ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
      ...more,
    },
  })

type Http2Answer = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  json(): unknown
}

export type Http2Client = {
  readonly session: ClientHttp2Session
  /** @throws Error when the stream or the session fails */
  send(path: string, headers?: Record<string, string>, method?: string): Promise<Http2Answer>
}

/** @param waits for the gateway's settings, so that the client knows how many requests it may send at once */
export const openHttp2 = async (t: Teardown, url: string, waits = true): Promise<Http2Client> => {
  const session = connect(url, trusting)
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  if (waits) await once(session, 'remoteSettings')
  return {
    session,
    send: async (path, headers = {}, method = 'GET') => {
      const stream = session.request({ ':path': path, ':method': method, ...headers })
      stream.end()
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      let received: IncomingHttpHeaders & { ':status'?: number | undefined } = {}
      stream.on('response', headers => {
        received = headers
      })
      let fault: Error | undefined
      stream.on('error', error => {
        fault = error
      })
      await new Promise(resolve => stream.once('close', resolve))
      if (fault || !stream.readableEnded || received[':status'] === undefined)
        throw fault ?? new Error('the session ended before the answer')
      const bytes = Buffer.concat(chunks)
      return {
        status: Number(received[':status']),
        headers: received,
        bytes,
        json: () => JSON.parse(bytes.toString()),
      }
    },
  }
}

/** Types of frames. */
export const frames = {
  ...{ data: 0, headers: 1, reset: 3, settings: 4, ping: 6, windowUpdate: 8, continuation: 9 },
} as const

const nothing: Buffer = Buffer.alloc(0)

export const frame = (type: number, flags: number, stream: number, payload = nothing): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** HEADERS of a whole GET, each header as a literal that is not indexed. */
export const getFrame = (stream: number, path: string, headers: Record<string, string> = {}): Buffer => {
  const all = { ':method': 'GET', ':scheme': 'https', ':authority': 'localhost', ':path': path, ...headers }
  const text = (given: string) => Buffer.concat([Buffer.from([given.length]), Buffer.from(given)])
  const block = Object.entries(all).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)])
  // END_STREAM and END_HEADERS.
  return frame(frames.headers, 0x5, stream, Buffer.concat(block))
}
