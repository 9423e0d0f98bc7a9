// A hostile provider: a real HTTP server on loopback. The first path segment of a request selects the attack; `/honest`
// forwards to a well-behaved provider.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listenOn } from './listening.ts'
import type { Teardown } from './teardown.ts'

type Exchanged = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly socket: Socket
  /** The response of a well-behaved provider to the same request. */
  honest(): Promise<string>
}

/** Handles a request; connections that stay open are closed with the test. */
export type Attack = (exchanged: Exchanged) => unknown

export type HostileProvider = {
  /** The base address of an attack. */
  url(attack: string): string
  /** The number of open connections of an attack. */
  open(attack: string): number
}

/** @param isSteady equal requests have equal honest responses, which are requested once */
export const startHostileProvider = async (
  t: Teardown,
  honestUrl: string,
  attacks: Readonly<Record<string, Attack>>,
  { isSteady = false } = {},
): Promise<HostileProvider> => {
  const known = new Map<string, Promise<string>>()
  const ask = async (path: string) => (await fetch(`${honestUrl}/${path}`)).text()
  const connections = new Map<string, Set<Socket>>()
  const server = createServer((request, response) => {
    const { socket } = request
    const [, name = '', ...rest] = (request.url ?? '').split('/')
    const honest = () => {
      const path = rest.join('/')
      const answer = (isSteady && known.get(path)) || ask(path)
      if (isSteady) known.set(path, answer)
      return answer
    }
    // The client may disconnect at any moment.
    response.on('error', () => {})
    const open = connections.get(name) ?? new Set()
    connections.set(name, open.add(socket))
    const attack = attacks[name]
    if (attack) void attack({ request, response, socket, honest })
    else void honest().then(text => response.end(text))
  })
  server.on('connection', socket => {
    socket.on('error', () => {})
    socket.once('close', () => {
      for (const open of connections.values()) open.delete(socket)
    })
  })
  const port = await listenOn(t, server)
  return {
    url: attack => `http://127.0.0.1:${port}/${attack}`,
    open: attack => connections.get(attack)?.size ?? 0,
  }
}

/** Sends the same bytes again and again until the client disconnects. */
export const forever = (to: ServerResponse | Socket, bytes: Buffer): void => {
  const send = (): void => {
    while (!to.destroyed && to.write(bytes));
    if (!to.destroyed) to.once('drain', send)
  }
  send()
}

/** A chunked body in chunks of one byte, with its end. */
export const inSingleBytes = (body: Buffer): Buffer => {
  const chunk = Buffer.from('1\r\n_\r\n')
  const chunks = Buffer.alloc(body.length * chunk.length, chunk)
  for (const [i, byte] of body.entries()) chunks[i * chunk.length + 3] = byte
  return Buffer.concat([chunks, Buffer.from('0\r\n\r\n')])
}
