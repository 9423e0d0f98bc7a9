// Whether an error that nobody caught is reported to the innermost test that runs, and to no test that waits or has ended.

import { AsyncResource } from 'node:async_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { Domain } from './error-domain.ts'
import { until } from './until.ts'

t.test('what nobody caught is reported to the innermost test that runs', async t => {
  const reported: unknown[] = []
  const domainIn = (scope: AsyncResource, name: string): Domain =>
    scope.runInAsyncScope(() => new Domain((error, origin) => reported.push([name, error, origin])))
  const fail = async (error: Error): Promise<void> => {
    const before = reported.length
    setImmediate(() => {
      throw error
    })
    await until('the error is reported', () => reported.length > before)
  }

  const outer = new AsyncResource('Test')
  const outerDomain = domainIn(outer, 'outer')
  outer.runInAsyncScope(() => {})
  const inner = new AsyncResource('Test')
  const innerDomain = domainIn(inner, 'inner')
  const error = new Error('of this test')

  await fail(error)
  t.strictSame(reported.pop(), ['outer', error, 'uncaughtException'], 'the inner one waits')
  t.equal(
    inner.runInAsyncScope(value => value, undefined, 7),
    7,
  )
  inner.runInAsyncScope(() => {})
  await fail(error)
  t.strictSame(reported.pop(), ['inner', error, 'uncaughtException'])
  Promise.reject(error)
  await until('the rejection is reported', () => reported.length > 0)
  t.strictSame(reported.pop(), ['inner', error, 'unhandledRejection'])

  innerDomain.destroy()
  await fail(error)
  t.strictSame(reported.pop(), ['outer', error, 'uncaughtException'], 'the inner one has ended')
  outerDomain.destroy()
  await pause(0)
  t.strictSame(reported, [])
})

t.test('tap has it', async t => {
  t.equal(process.listenerCount('uncaughtException'), 1)
  t.ok(t.hookDomain instanceof Domain)
})
