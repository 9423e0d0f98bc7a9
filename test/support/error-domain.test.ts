// Whether an error that nobody caught is reported to the innermost test that runs, and to no test that waits or has ended.

import { AsyncResource } from 'node:async_hooks'
import t from 'tap'
import { Domain } from './error-domain.ts'
import { until } from './until.ts'

t.test('what nobody caught is reported to the innermost test that runs', async t => {
  t.equal(process.listenerCount('uncaughtException'), 1, 'tap has one of its own')
  t.ok(t.hookDomain instanceof Domain)
  const reported: unknown[] = []
  const [outer, inner] = ['outer', 'inner'].map(name => {
    const scope = new AsyncResource('Test')
    const open = () => new Domain((_, origin) => reported.push(`${name}: ${origin}`))
    return { domain: scope.runInAsyncScope(open), enter: () => scope.runInAsyncScope(() => {}) }
  })
  const fail = async (act: () => unknown): Promise<unknown> => {
    act()
    await until('the error is reported', () => reported.length > 0)
    return reported.pop()
  }
  const throwLater = () =>
    setImmediate(() => {
      throw new Error('of this test')
    })
  outer?.enter()
  t.equal(await fail(throwLater), 'outer: uncaughtException', 'the inner one waits')
  inner?.enter()
  t.equal(await fail(throwLater), 'inner: uncaughtException')
  t.equal(await fail(() => Promise.reject(new Error('of this test'))), 'inner: unhandledRejection')
  inner?.domain.destroy()
  t.equal(await fail(throwLater), 'outer: uncaughtException', 'the inner one has ended')
  outer?.domain.destroy()
  t.strictSame(reported, [])
})
