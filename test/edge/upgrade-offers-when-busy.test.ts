// Offers to upgrade while turns of the event loop are used up at once, as on a busy machine: such a request is read again, in a
// later turn, and nothing of it is lost.

import type { AddressInfo } from 'node:net'
import t from 'tap'
import { goodKey, startApp } from '../support/api-app.ts'
import { openRaw } from '../support/raw-connection.ts'

const host = '127.0.0.1'

t.test('each request with an offer to upgrade is answered', async t => {
  // Now and then a look at the clock takes as long as connections without a key have of a turn.
  let now = performance.now()
  let looks = 0
  const hasSlept = (): boolean => (looks++ * 7_919) % 10 < 3
  t.intercept(performance, 'now', { value: () => (now += hasSlept() ? 0.3 : 0) })
  const api = await startApp(t)
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  const url = `http://${host}:${(api.server.address() as AddressInfo).port}`
  const request = (...headers: string[]): string =>
    ['GET /livez HTTP/1.1', `host: ${host}`, ...headers, '', ''].join('\r\n')
  // Nothing is there, and the key has used its quota up after a while.
  const cases: [headers: string[], statuses: number[]][] = [
    [[], [401]],
    [[`x-api-key: ${goodKey}`], [404, 429]],
  ]
  for (const [headers, statuses] of cases)
    for (let connections = 0; connections < 10; connections++) {
      const raw = await openRaw(t, url)
      const offer = request('connection: upgrade', 'upgrade: h2c', ...headers)
      // One after the other, and several at once.
      for (const atOnce of [1, 1, 1, 1, 3]) {
        raw.send(offer.repeat(atOnce))
        for (let i = 0; i < atOnce; i++) t.ok(statuses.includes((await raw.answer()).status))
      }
      raw.socket.destroy()
    }
})
