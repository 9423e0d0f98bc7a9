// Many callers at the same moment: connections are opened beforehand, requests are written as ready bytes in one turn of
// the event loop, and responses are parsed only for their status and length, so that timings are those of the gateway.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Teardown } from '../support/teardown.ts'

type TimedResponse = {
  /** 0 when the connection ended first. */
  readonly status: number
  /** From the write to the last byte of the response. */
  readonly ms: number
  /** Status line and headers as received. */
  readonly head: string
}

/** Sends requests with the caller's key, unless another is given. */
export type Caller = {
  send(path: string, key?: string, headers?: Readonly<Record<string, string>>): Promise<TimedResponse>
}

const headEnd = Buffer.from('\r\n\r\n')

/** Opens connections of so many callers to one gateway. */
export const openCallers = async (
  scope: Teardown,
  url: string,
  key: string,
  callers: number,
): Promise<Caller[]> => {
  const { hostname, port } = new URL(url)
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.setNoDelay(true)
    socket.on('error', () => {})
    scope.teardown(() => socket.destroy())
    return socket
  }
  return Promise.all(Array.from({ length: callers }, async () => callerOn(await open(), open, key)))
}

/** @param open makes the next connection, once the gateway has announced the end of this one */
const callerOn = (first: Socket, open: () => Promise<Socket>, key: string): Caller => {
  let socket = first
  let isEnding = false
  let settle: ((head: string) => void) | undefined
  let received: Buffer = Buffer.alloc(0)
  const listen = (): void => {
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const end = received.indexOf(headEnd)
      if (end < 0) return
      const head = received.toString('latin1', 0, end)
      const bodiless = head.startsWith('304', 9)
      const length = bodiless ? 0 : Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (received.length < end + headEnd.length + length) return
      isEnding = head.includes('\r\nconnection: close')
      settle?.(head)
    })
    const own = socket
    own.on('close', () => {
      if (own === socket && !isEnding) settle?.('')
    })
  }
  listen()
  return {
    send: (path, presentedKey = key, headers = {}) => {
      const { promise, resolve } = Promise.withResolvers<TimedResponse>()
      const started = performance.now()
      settle = head => {
        settle = undefined
        received = Buffer.alloc(0)
        resolve({ status: Number(head.slice(9, 12)), ms: performance.now() - started, head })
      }
      const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const write = () =>
        socket.write(
          `GET ${path} HTTP/1.1\r\nhost: bench\r\nx-api-key: ${presentedKey}\r\n${more.join('')}\r\n`,
        )
      if (isEnding)
        open().then(
          next => {
            socket = next
            isEnding = false
            listen()
            write()
          },
          () => settle?.(''),
        )
      else if (socket.destroyed) settle('')
      else write()
      return promise
    },
  }
}
