// Reads a connection one head at a time, so that its owner decides after each request whether to take the next one. Node's
// parser takes all requests of a 64 KiB read at once, some 3,600 of the smallest. connections.ts decides which connections are
// read like this, and for how long.
//
// A `readable` listener is the documented way to make Node's HTTP server read through JavaScript. The way back to its fast path
// is private: where the private fields are missing, the connection stays on JavaScript without pacing, a tenth slower.

import type { Socket } from 'node:net'

export type PacedReading = {
  /** Reads what has arrived, as far as the owner allows. */
  resume(): void
  /** Gives the connection back to Node; false while bytes wait. */
  end(): boolean
  /** Reads for the parser that Node's HTTP server has put on the socket since, in place of the one before. */
  readForNextParser(): void
}

export type PacedOwner = {
  /** Whether one more request may be taken from this connection now. */
  readonly mayRead: () => boolean
  /** Bytes have arrived. */
  readonly onReadable: () => void
  /** Node reads again, after it had stopped because the client did not read its answers. */
  readonly onResume: () => void
}

type Consumer = { consume(handle: object): void; _consumed?: boolean }
/** The private fields on the sockets of Node's HTTP server. */
type HttpSocket = Socket & {
  readonly parser?: Partial<Consumer> | null
  readonly _handle?: object | null
  /** Set while Node itself has stopped reading, because the client does not read its answers. */
  readonly _paused?: boolean
}

// A head ends with it, so that bytes up to the first one complete one request, or two where the end of another was cut by
// the search.
const headEnd = '\r\n\r\n'
// Searched at once. The rest of a longer head follows.
const searchedBytes = 4 * 1024
const stoppingEvents = ['pause', 'resume'] as const

/** @param socket one that Node's HTTP server has just been given */
export const readPaced = (socket: Socket, { mayRead, onReadable, onResume }: PacedOwner): PacedReading => {
  const http: HttpSocket = socket
  let listeners: ReturnType<Socket['listeners']>[] = []
  let parse: ((chunk: Buffer) => void)[] = []
  const takeParser = (): void => {
    listeners = stoppingEvents.map(event => socket.listeners(event).filter(listener => listener !== onResume))
    // Node's parser listens for data.
    parse = socket.listeners('data') as typeof parse
    for (const listener of parse) socket.removeListener('data', listener)
  }
  takeParser()
  socket.on('readable', onReadable)
  socket.on('resume', onResume)
  /** The bytes up to the end of the next head. What is behind it stays on the socket, where an ignored upgrade looks for it. */
  const nextHead = (): Buffer | undefined => {
    const part: Buffer | null = socket.read(Math.min(socket.readableLength, searchedBytes))
    if (!part) return undefined
    const end = part.indexOf(headEnd) + headEnd.length
    if (end < headEnd.length || end === part.length) return part
    socket.unshift(part.subarray(end))
    return part.subarray(0, end)
  }

  return {
    readForNextParser: takeParser,
    resume: () => {
      while (socket.readableLength > 0 && !socket.destroyed && !http._paused && mayRead()) {
        const head = nextHead()
        if (head) for (const listener of parse) listener(head)
      }
      // A read at the end emits `end`.
      if (socket.readableLength === 0) socket.read(0)
    },
    end: () => {
      const { parser, _handle: handle, _paused: paused } = http
      if (socket.destroyed || socket.readableLength > 0 || paused) return false
      for (const listener of parse) socket.on('data', listener)
      socket.removeListener('readable', onReadable)
      socket.removeListener('resume', onResume)
      // Node pauses a connection through listeners that it removed with its fast path.
      for (const [i, event] of stoppingEvents.entries())
        for (const listener of listeners[i] ?? [])
          if (!socket.listeners(event).includes(listener)) socket.on(event, listener as () => void)
      if (handle && typeof parser?.consume === 'function' && !parser._consumed) {
        parser.consume(handle)
        parser._consumed = true
      }
      return true
    },
  }
}
