// Without it listeners could pile up on connections that are kept for hours.

import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createApplication } from '../../src/operate/listener/application.ts'
import { openRaw } from '../support/raw-connection.ts'
import { goodKey, startApp } from './api-app.ts'

const host = '127.0.0.1'
const urlOf = (address: unknown): string => `http://${host}:${(address as AddressInfo).port}`
const listenersOn = (socket: Socket): Record<string, number> =>
  Object.fromEntries(socket.eventNames().map(event => [String(event), socket.listenerCount(event)]))
const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, `host: ${host}`, ...headers, '', ''].join('\r\n')
const requests: Readonly<Record<string, string>> = {
  plain: head('GET /livez'),
  'of a pipeline': head('GET /livez').repeat(3),
  'with an expectation': head('GET /livez', 'expect: 100-continue'),
}

/** Sends the same bytes many times, and compares what is on the server's socket after the first and after the last time. */
const compare = async (t: Test, url: string, accepted: () => Socket | undefined, key = ''): Promise<void> => {
  for (const [what, bytes] of Object.entries(requests)) {
    const raw = await openRaw(t, url)
    const seen: Record<string, number>[] = []
    const keyed = bytes.replaceAll('\r\nhost', `${key}\r\nhost`)
    for (let i = 0; i < 15; i++) {
      raw.send(keyed)
      for (let j = 0; j < bytes.split('/livez').length - 1; j++) await raw.answer()
      seen.push(listenersOn(accepted() as Socket))
    }
    t.strictSame(seen.at(-1), seen[1], `a request ${what}`)
  }
}

t.test('of the API', async t => {
  for (const key of ['', `\r\nx-api-key: ${goodKey}`]) {
    const api = await startApp(t)
    let accepted: Socket | undefined
    api.server.on('connection', socket => {
      accepted = socket
    })
    await api.listen({ host, port: 0 })
    t.teardown(api.close)
    await compare(t, urlOf(api.server.address()), () => accepted, key)
  }
})

t.test('of the ops listener', async t => {
  const { server, listen, close } = createApplication(
    { admit: () => undefined, paths: '', observer: { refused: () => {}, unloadable: () => {} } },
    { maxConnections: 10, requestTimeoutMs: 10_000, answerWithinMs: 10_000 },
    async app => void app.get('/livez', async () => 'ok'),
  )
  let accepted: Socket | undefined
  server.on('connection', socket => {
    accepted = socket
  })
  await listen({ host, port: 0 })
  t.teardown(close)
  await compare(t, urlOf(server.address()), () => accepted)
})
