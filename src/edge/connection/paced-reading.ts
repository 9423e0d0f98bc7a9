// Reads a connection in small chunks, so that its owner decides after each request whether to take the next one. Node's parser
// takes all requests of a 64 KiB read at once, some 3,600 of the smallest. connections.ts decides which connections are read
// like this, and for how long.
//
// A `readable` listener is the documented way to make Node's HTTP server read through JavaScript. The way back to its fast path
// is private: where the private fields are missing, the connection stays on JavaScript without chunks, a tenth slower.

import type { Socket } from 'node:net'

export type PacedReading = {
  /** Reads what has arrived, as far as the owner allows. */
  resume(): void
  /** Gives the connection back to Node; false while bytes wait. */
  end(): boolean
  /** Reads no more. */
  stop(): void
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

// So many bytes hold at most seven requests: the smallest has 18.
const chunkBytes = 128
const stoppingEvents = ['pause', 'resume'] as const

/** @param socket one that Node's HTTP server has just been given */
export const readPaced = (socket: Socket, { mayRead, onReadable, onResume }: PacedOwner): PacedReading => {
  const http: HttpSocket = socket
  const listeners = stoppingEvents.map(event => socket.listeners(event))
  socket.on('readable', onReadable)
  socket.on('resume', onResume)
  const stop = (): void => {
    socket.removeListener('readable', onReadable)
    socket.removeListener('resume', onResume)
  }

  return {
    stop,
    resume: () => {
      while (socket.readableLength > 0 && !socket.destroyed && !http._paused && mayRead())
        // Node's parser is the listener for data.
        socket.read(Math.min(socket.readableLength, chunkBytes))
      // A read at the end emits `end`.
      if (socket.readableLength === 0) socket.read(0)
    },
    end: () => {
      const { parser, _handle: handle, _paused: paused } = http
      if (socket.destroyed || socket.readableLength > 0 || paused) return false
      stop()
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
