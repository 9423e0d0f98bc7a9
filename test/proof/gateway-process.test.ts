// Without it gateway processes of a history could ignore the fleet's clock, a kill or a planted fault, and prove nothing.

import t from 'tap'
import { createFleetClock } from '../../proof/fleet/clock.ts'
import { createFleet } from '../../proof/fleet/fleet.ts'
import { openLane } from '../../proof/fleet/lane.ts'
import { type Answer, createRecorder } from '../../proof/history.ts'
import { scheduleOf } from '../../proof/schedule.ts'
import type { Teardown } from '../support/teardown.ts'

const dayMs = 86_400_000
// No answer of Redis comes late here, however busy the machine is.
const patient = {
  settings: { 'redis.commandTimeout': '60s' },
  constants: { ABOHAWA_TEST_REDIS__CONNECT_TIMEOUT: '60s' },
}
const schedule = { ...scheduleOf(0), ...patient, protocol: 'http', hasProcesses: true, steps: [] } as const
const request = (gateway: number) =>
  ({ gateway, key: 'many', path: '/locations?type=division&limit=1' }) as const

const open = async (t: Teardown, store: 'redis' | 'embedded', sabotage?: string) => {
  const lane = await openLane(sabotage)
  t.teardown(lane.close)
  const clock = createFleetClock(schedule.start)
  const recorder = createRecorder(clock.now)
  const skews = store === 'redis' ? [0, 0] : [0]
  const fleet = await createFleet({ lane, schedule: { ...schedule, store, skews }, clock, recorder })
  t.teardown(fleet.close)
  const answers = (): Answer[] => recorder.events.filter(event => event.kind === 'answer')
  const ask = async (gateway: number): Promise<Answer | undefined> => {
    await fleet.send([request(gateway)])
    return answers().at(-1)
  }
  return { fleet, clock, answers, ask }
}
const header = (answer: Answer | undefined, name: string): number =>
  Number(answer?.headers[`x-ratelimit-${name}`])

t.test('they follow the clock, count together, and answer after they stood still', async t => {
  const { fleet, clock, answers, ask } = await open(t, 'redis')
  const first = await ask(0)
  const second = await ask(1)
  t.equal(header(second, 'remaining'), header(first, 'remaining') - 1)
  await clock.advance(dayMs)
  t.equal(header(await ask(0), 'reset'), header(first, 'reset') + dayMs / 1_000)

  const before = answers().length
  const under = Array.from({ length: 6 }, () => request(1))
  await fleet.take({ do: 'suspend', gateway: 1, ms: 200, moveMs: 5_000, under })
  const late = answers().slice(before)
  t.strictSame(new Set(late.map(({ status }) => status)), new Set([200]))
  t.ok(
    late.some(({ at, sent }) => at - sent.at >= 5_000),
    'some waited until it went on',
  )
})

t.test('one that is killed has counted what it answered, and what is planted is in it', async t => {
  const { fleet, ask } = await open(t, 'embedded', 'remaining is the count before the request')
  const first = await ask(0)
  t.equal(header(first, 'remaining'), header(first, 'limit'), 'the planted fault')
  await fleet.take({ do: 'kill', gateway: 0 })
  t.equal(await ask(0), first, 'nobody is there')
  await fleet.take({ do: 'start', gateway: 0, skewMs: 0 })
  t.equal(header(await ask(0), 'remaining'), header(first, 'remaining') - 1)
})
