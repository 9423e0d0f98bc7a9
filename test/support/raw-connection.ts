// Raw HTTP/1.1 on a socket, for requests that no client library would send: one connection whose responses are read one by one, or
// one request with its response.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { answerIn } from '../../fuzz/http/response-reader.ts'
import type { Teardown } from './teardown.ts'
import { patienceMs } from './until.ts'

type RawAnswer = {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export type RawConnection = {
  readonly socket: Socket
  send(bytes: string | Buffer): void
  /** The next response. @throws Error when the connection ends before it, or when none comes */
  answer(method?: string): Promise<RawAnswer>
  /** All responses until the other side closes. @throws Error when none comes */
  answersToTheEnd(): Promise<RawAnswer[]>
}

/** A connection to the listener of a URL, over TCP or TLS. */
export const openRaw = async (t: Teardown, url: string): Promise<RawConnection> => {
  const { hostname, port, protocol } = new URL(url)
  const at = { port: Number(port), host: hostname }
  const isTls = protocol === 'https:'
  // The test certificate has a host name; other tests check its verification.
  const socket = isTls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
  t.teardown(() => socket.destroy())
  let received = Buffer.alloc(0)
  let failed: Error | undefined
  let wake = (): void => {}
  socket.on('error', error => {
    failed = error
  })
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
  })
  // Listened for once: a listener for each read would pile up while the other events stay away.
  for (const event of ['data', 'end', 'close']) socket.on(event, () => wake())
  await once(socket, isTls ? 'secureConnect' : 'connect')

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
    for (;;) {
      const found = answerIn(received, method === 'HEAD')
      if (found) {
        received = received.subarray(found.length)
        return { ...found.answer, body: String(found.answer.body) }
      }
      await more('the whole answer')
    }
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

/** A connection to the listener of a URL. The reader gets its errors. */
export const openSocket = (url: string): Socket => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  return socket
}

/** The kernel takes more, or the connection is closed. Leaves no listener behind, however often it is waited for. */
export const drained = (socket: Socket): Promise<void> =>
  new Promise(resolve => {
    const done = (): void => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })

/** A request line, headers in the form `name: value` and a body, with `connection: close`. */
export const requestBytes = (line: string, headers: readonly string[] = [], body = ''): string =>
  [`${line} HTTP/1.1`, ...headers, 'connection: close', '', body].join('\r\n')

/** Sends bytes that end with `connection: close`, and reads the response; its status is 0 where none came in time. */
export const sendRaw = async (url: string, bytes: string) => {
  const socket = openSocket(url)
  const late = setTimeout(() => socket.destroy(), patienceMs)
  socket.write(bytes, 'latin1')
  const chunks: Buffer[] = []
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    // A reset: what came before it is the answer.
  } finally {
    clearTimeout(late)
  }
  const all = Buffer.concat(chunks)
  // What no parser took as HEAD is answered with a body.
  const isHead = bytes.startsWith('HEAD ') && all.subarray(-4).toString() === '\r\n\r\n'
  const found = (answerIn(all, isHead || undefined) ?? answerIn(all, true))?.answer
  const text = String(found?.body ?? '')
  return {
    status: found?.status ?? 0,
    headers: Object.fromEntries(found?.headers ?? []),
    text,
    body: jsonIn(text),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
const jsonIn = (text: string): any => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
