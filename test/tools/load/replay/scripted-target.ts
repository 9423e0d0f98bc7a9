// A target of replays: answers as the test says, at once or when the test releases them, and keeps what it received. On a
// plain socket, so that a test can also send what no server of Node would.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Teardown } from '../../../support/teardown.ts'

type Received = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Which connection it came on, from 0. */
  readonly connection: number
}

export type ScriptedTarget = {
  readonly url: string
  readonly port: number
  readonly received: readonly Received[]
  readonly connections: number
  /** From now on requests wait. */
  hold(): void
  /** Answers all that wait, and the later ones at once. */
  release(): void
}

type Answer = (request: Received, socket: Socket) => string | undefined

export const ok = (body = '{}', headers = ''): string =>
  `HTTP/1.1 200 OK\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** @param answer the bytes of an answer; undefined sends none */
export const startTarget = async (
  t: Teardown,
  answer: Answer = () => ok(),
  listen: { path: string } | { port: number; host: string } = { port: 0, host: '127.0.0.1' },
): Promise<ScriptedTarget> => {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  let held: (() => void)[] | undefined
  const server = createServer(socket => {
    const connection = connections++
    sockets.add(socket)
    let text = ''
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', part => {
      text += part.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const [line = '', ...fields] = text.slice(0, end).split('\r\n')
        text = text.slice(end + 4)
        const [method = '', path = ''] = line.split(' ')
        const headers = Object.fromEntries(
          fields.map(field => [field.slice(0, field.indexOf(':')), field.slice(field.indexOf(':') + 2)]),
        )
        const request = { method, path, headers, connection }
        received.push(request)
        const reply = (): void => {
          const bytes = answer(request, socket)
          if (bytes !== undefined) socket.write(bytes, 'latin1')
        }
        if (held) held.push(reply)
        else reply()
      }
    })
  })
  server.listen(listen)
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const port = 'path' in listen ? 0 : (server.address() as AddressInfo).port
  return {
    url: 'path' in listen ? `unix:${listen.path}` : `http://127.0.0.1:${port}`,
    port,
    received,
    get connections() {
      return connections
    },
    hold: () => {
      held ??= []
    },
    release: () => {
      const waiting = held ?? []
      held = undefined
      for (const reply of waiting) reply()
    },
  }
}
