// One connection to a listener, over TCP or TLS by its URL, for tests of exact bytes: sends raw bytes and parses the
// HTTP/1.1 responses one by one.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

type RawAnswer = {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export type RawConnection = {
  readonly socket: Socket
  send(bytes: string | Buffer): void
  /** The next response. @throws Error when the connection ends before it, or after 10 s */
  answer(method?: string): Promise<RawAnswer>
  /** All responses until the other side closes. @throws Error after a minute */
  answersToTheEnd(): Promise<RawAnswer[]>
}

type Teardown = { teardown(fn: () => unknown): void }

const patienceMs = 60_000

export const openRaw = async (t: Teardown, url: string): Promise<RawConnection> => {
  const { hostname, port, protocol } = new URL(url)
  const at = { port: Number(port), host: hostname }
  const isTls = protocol === 'https:'
  // The test certificate has a host name; other tests check its verification.
  const socket = isTls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
  t.teardown(() => socket.destroy())
  let received = Buffer.alloc(0)
  let failed: Error | undefined
  socket.on('error', error => {
    failed = error
  })
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
  })
  await once(socket, isTls ? 'secureConnect' : 'connect')

  let wake = (): void => {}
  // Listened for once: a listener for each read would pile up while the other events stay away.
  for (const event of ['data', 'end', 'close']) socket.on(event, () => wake())
  const more = async (what: string): Promise<void> => {
    if (socket.readableEnded || socket.destroyed)
      throw new Error(`the connection ended before ${what}`, { cause: failed })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    wake = resolve
    const onLate = () => reject(new Error(`${what} did not come within ${patienceMs} ms`))
    const late = setTimeout(onLate, patienceMs)
    await promise.finally(() => clearTimeout(late))
  }
  const answer = async (method = 'GET'): Promise<RawAnswer> => {
    while (!received.includes('\r\n\r\n')) await more('the head of an answer')
    const end = received.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      lines.map(line => line.split(/: (.*)/s)).map(([name = '', value = '']) => [name.toLowerCase(), value]),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
    const length =
      method === 'HEAD' || status === 304 || status === 204 ? 0 : Number(headers.get('content-length'))
    while (received.length < end + 4 + length) await more('the body of an answer')
    const body = received.toString('utf8', end + 4, end + 4 + length)
    received = received.subarray(end + 4 + length)
    return { status, headers, body }
  }

  return {
    socket,
    send: bytes => {
      socket.write(bytes)
    },
    answer,
    answersToTheEnd: async () => {
      const answers: RawAnswer[] = []
      for (;;) {
        while (received.length === 0 && !socket.readableEnded && !socket.destroyed) await more('the end')
        if (received.length === 0) return answers
        answers.push(await answer())
      }
    },
  }
}
