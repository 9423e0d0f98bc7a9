// Without it revoking a subscriber or reading the status could walk over all keys.

import { join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { run } from '../../src/cli/program.ts'
import { systemClock } from '../../src/common/clock.ts'
import { readConfig } from '../../src/config/load.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { forAll } from '../scenarios/set-up.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { quiet } from '../support/redis-store.ts'
import { startGateway } from '../support/start-gateway.ts'

const keys = 5_000
// A gateway that runs asks its store for something now and then.
const maxSteps = 100

type Env = Record<string, string>
type Given = Parameters<StatementSync['all']>
type StoreKind = { env: Env; stepsOf(act: () => Promise<unknown>): Promise<number> }

const onRedis = async (t: Test): Promise<StoreKind> => {
  const { url, admin: raw } = await startRedis(t)
  const stepsOf: StoreKind['stepsOf'] = async act => {
    await raw.config('RESETSTAT')
    await act()
    const stats = await raw.info('commandstats')
    return [...stats.matchAll(/^cmdstat_.*:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  }
  return { env: { ...patientRedisEnv, ABOHAWA_REDIS__URL: url }, stepsOf }
}

const onEmbedded = async (t: Test): Promise<StoreKind> => {
  const { all, get, iterate, run: write } = StatementSync.prototype
  let rows = 0
  const counted = <Result>(result: Result, count = 1): Result => {
    rows += count
    return result
  }
  t.teardown(() => Object.assign(StatementSync.prototype, { all, get, iterate, run: write }))
  Object.assign(StatementSync.prototype, {
    all(this: StatementSync, ...given: Given) {
      const found = all.apply(this, given)
      return counted(found, found.length)
    },
    get(this: StatementSync, ...given: Given) {
      return counted(get.apply(this, given))
    },
    *iterate(this: StatementSync, ...given: Given) {
      for (const row of iterate.apply(this, given)) yield counted(row)
    },
    run(this: StatementSync, ...given: Given) {
      return counted(write.apply(this, given))
    },
  })
  const stepsOf: StoreKind['stepsOf'] = async act => {
    rows = 0
    await act()
    return rows
  }
  return { env: { ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }, stepsOf }
}

/** A command line in this process: what it printed. */
const runHere = async (t: Test, args: readonly string[], env: Env): Promise<string> => {
  const printed = t.capture(process.stdout, 'write', () => true)
  const code = await run(args, { env, clock: systemClock })
  printed.restore()
  const text = printed()
    .map(({ args: [text] }) => text)
    .join('')
  t.equal(code, 0, args.join(' '))
  return text
}

for (const [kind, open, skip] of [
  ['Redis', onRedis, withoutOwnRedis],
  ['the embedded store', onEmbedded, false],
] as const)
  t.test(`on ${kind} it costs the same with ${keys} keys as with few`, { skip }, async t => {
    const { env, stepsOf } = await open(t)
    const store = await openStore(readConfig({ files: [], env }).config, systemClock, quiet)
    t.teardown(() => store.close())
    await store.ensureSubscriber(sampleSubscriber)
    const filled = await stepsOf(() =>
      forAll(Array(keys).keys().toArray(), 100, i => store.addKey(sampleKey(`key_${i}`))),
    )
    t.ok(filled >= keys, `${filled} steps are counted`)
    const { id, name } = sampleSubscriber

    // Nobody answers there.
    const noGateway = { ...env, ABOHAWA_OPS__PORT: '1' }
    for (const options of [[], ['--undo']]) {
      const steps = await stepsOf(() => runHere(t, ['subscribers', 'revoke', ...options, name], noGateway))
      t.ok(steps <= maxSteps, `subscribers revoke ${options.join()}: ${steps}`)
    }
    let status = ''
    const steps = await stepsOf(async () => {
      status = await runHere(t, ['status', '--json'], noGateway)
    })
    t.equal(JSON.parse(status).keysNearLimit, null, 'too many to read each')
    t.ok(steps <= maxSteps, `status: ${steps}`)
    const walked = await stepsOf(() => runHere(t, ['subscribers', 'list'], noGateway))
    t.ok(walked >= keys, `a walk over the keys takes ${walked}`)

    const token = 'k3J9-xQ2.mN7_pR4~tW8+yZ1/bD5cF6g=='
    const { opsUrl } = await startGateway(t, {
      providerUrl: 'http://127.0.0.1:9',
      env: { ...env, ABOHAWA_OPS__TOKEN: token },
    })
    const request = { method: 'POST', headers: { authorization: `Bearer ${token}` } }
    for (const action of ['revoke', 'reinstate']) {
      const post = async () => {
        const { status } = await fetch(`${opsUrl}/subscribers/${id}/${action}`, request)
        t.equal(status, 200)
      }
      const steps = await stepsOf(post)
      t.ok(steps <= maxSteps, `POST …/${action}: ${steps}`)
    }
  })
