// Raw HTTP on a socket, for requests that no client library would send.

import { connect, type Socket } from 'node:net'

export type RawAnswer = {
  /** 0 when the connection ended without a response. */
  status: number
  /** By lower-case name; the last value of a repeated header. */
  headers: Record<string, string>
  text: string
  /** The body as JSON; undefined when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
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

/** Sends the bytes and reads to the end of the connection; send `connection: close` to get one. */
export const sendRaw = async (url: string, bytes: string): Promise<RawAnswer> => {
  const socket = openSocket(url)
  socket.write(bytes, 'latin1')
  const chunks: Buffer[] = []
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    // A reset: what came before it is the answer.
  }
  return answerIn(Buffer.concat(chunks).toString())
}

/** A request line, headers in the form `name: value` and a body, with `connection: close`. */
export const requestBytes = (line: string, headers: readonly string[] = [], body = ''): string =>
  [`${line} HTTP/1.1`, ...headers, 'connection: close', '', body].join('\r\n')

const answerIn = (text: string): RawAnswer => {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [name = '', ...value] = line.split(':')
    headers[name.toLowerCase()] = value.join(':').trim()
  }
  const body = rest.join('\r\n\r\n')
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, text: body, body: jsonIn(body) }
}

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
