// Without it a change of a key by a command could stay unknown to gateways of a running fleet, or reset the key's count.

import t from 'tap'
import { quietZone } from '../scenarios/keys.ts'
import { processEnv } from '../scenarios/set-up.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { type Answer, sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t, undefined, null)
const list = '/api/v1/locations?type=division'

t.test('key changes take effect on both gateways, and the count of the day stays', async t => {
  const redis = await testRedis(t)
  const env = processEnv(provider.url, {
    ...redis.env,
    ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
  })
  const gateways = await Promise.all([1, 2].map(() => startCommand(t, ['serve'], ['api'], env)))
  const command = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], env)
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }
  let [counted, forbidden] = [0, 0]
  const send = async (at: number, key: string, path = list): Promise<Answer> => {
    const answer = await sendRequest(`${gateways[at]?.urls.api}${path}`, { key })
    // Neither takes a unit of the day.
    if (answer.status === 403) forbidden += 1
    else if (answer.status !== 401) counted += 1
    return answer
  }
  /** Sends requests to both gateways until both responses are as expected. */
  const onBoth = (title: string, key: string, isMeant: (answer: Answer) => boolean) =>
    Promise.all([0, 1].map(at => until(title, async () => isMeant(await send(at, key)))))
  const isOk = ({ status }: Answer) => status === 200
  const isRefused = (reason: string) => (answer: Answer) =>
    answer.status === 401 && answer.body.error === `the API key is invalid: ${reason}`
  const isOfNoUse = ({ status, body }: Answer) => status === 403 && body.code === 'key_endpoint_not_allowed'
  const hasLimit = (limit: number) => (answer: Answer) =>
    answer.headers['x-ratelimit-limit'] === String(limit)

  const { id, key: first } = await command(...'keys create --subscriber Fleet --tier enterprise'.split(' '))
  for (const at of [0, 1])
    t.equal((await send(at, first)).status, 200, 'a new key works on its first request')

  for (const [words, title, isMeant] of [
    [`keys revoke ${id}`, 'revoked', isRefused('it was revoked')],
    [`keys revoke --undo ${id}`, 'reinstated', isOk],
    ['subscribers revoke Fleet', 'subscriber revoked', isRefused('its subscriber was revoked')],
    ['subscribers revoke --undo Fleet', 'subscriber reinstated', isOk],
    [`keys set ${id} --tier business`, 'tier', hasLimit(10_000)],
    [`keys set ${id} --limit 7777`, 'limit', hasLimit(7_777)],
    [`keys set ${id} --endpoints weather --addresses 127.0.0.1`, 'restrictions', isOfNoUse],
    [`keys set ${id} --endpoints none --addresses none`, 'no restrictions', isOk],
  ] as const) {
    await command(...words.split(' '))
    await onBoth(title, first, isMeant)
  }

  const { key: second } = await command('keys', 'rotate', id, '--overlap', '1h')
  for (const at of [0, 1])
    for (const key of [second, first]) t.equal((await send(at, key)).status, 200, 'both work in the overlap')
  const { key: third, formerKeyUntil } = await command('keys', 'rotate', id, '--overlap', '1s')
  t.equal((await send(0, third)).status, 200)
  const refusedFrom = Date.parse(formerKeyUntil)
  for (const key of [first, second])
    await Promise.all(
      [0, 1].map(async at => {
        const answer = await until('the replaced key is refused', async () => {
          const answer = await send(at, key)
          return answer.status !== 200 && answer
        })
        t.ok(isRefused('it was replaced by a newer one')(answer), answer.body.error)
        t.ok(Date.now() >= refusedFrom, 'not before the overlap is over')
      }),
    )

  const last = await send(1, third)
  t.equal(Number(last.headers['x-ratelimit-remaining']), 7_777 - counted, 'one count under all three keys')
  await send(1, third, '/api/v1/weather/district/9999')
  const usage = await command('keys', 'usage', id, '--days', '1')
  t.hasStrict(usage, { limit: 7_777, days: [{ used: counted }] })

  // The gateways flush the last counts by endpoint when they stop.
  for (const { child, exited } of gateways) {
    child.kill('SIGTERM')
    t.equal(await exited, 0)
  }
  t.strictSame((await command('keys', 'usage', id, '--days', '1')).today, [
    { endpoint: 'locations', statusClass: '2xx', count: counted - 1 },
    { endpoint: 'locations', statusClass: '4xx', count: forbidden },
    { endpoint: 'weather', statusClass: '4xx', count: 1 },
  ])
})
