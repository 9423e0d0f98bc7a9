// Without it a client that gave up could count as one that waits, and a rehearsal would wait for it at every instant.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { Message, Reply } from '../../src/common/moved-clock-commands.ts'
import { cleanEnv } from '../support/process.ts'
import { until } from '../support/until.ts'

t.test('a request counts as unanswered until its client gives up', async t => {
  const child = fork(new URL('commanded-server.ts', import.meta.url), { env: cleanEnv(), execArgv: [] })
  t.teardown(() => child.kill())
  const received = async () => (await once(child, 'message'))[0] as Message
  const { ready } = (await received()) as { ready: string }
  const unansweredAre = (count: number) =>
    until(`${count} are unanswered`, async () => {
      child.send({ settle: true })
      return ((await received()) as Reply).unanswered === count
    })
  const client = connect(Number(new URL(ready).port), '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(3))
  await unansweredAre(3)
  client.destroy()
  await unansweredAre(0)
})
