// In the place of the package that hands tap the errors that nobody caught (plain-node.ts loads it). That package follows every
// promise and timer by hooks to find the test an error came from: up to a third of the time of a test with many promises.
// The tests of most files run one after the other, so the error belongs to the innermost test that runs. Where several run at
// once it may be told of another of them; the file fails as it should.

import { AsyncResource, executionAsyncResource } from 'node:async_hooks'

type OnError = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => void

/** Of the tests that run, the innermost last. */
const running: Domain[] = []

const report: NodeJS.UncaughtExceptionListener = (error, origin) => running.at(-1)?.onerror(error, origin)

export class Domain {
  readonly onerror: OnError

  constructor(onerror: OnError) {
    this.onerror = onerror
    const scope: unknown = executionAsyncResource()
    if (scope instanceof AsyncResource) this.#openWith(scope)
    else this.#open()
  }

  destroy(): void {
    const at = running.indexOf(this)
    if (at === -1) return
    running.splice(at, 1)
    // Without a test an error ends the process, as it does in any program.
    if (running.length === 0) process.off('uncaughtException', report)
  }

  /** A test is made in its scope, and may have to wait for others; it begins when it enters the scope again. */
  #openWith(scope: Pick<AsyncResource, 'runInAsyncScope'>): void {
    const enter = scope.runInAsyncScope
    scope.runInAsyncScope = (...args) => {
      scope.runInAsyncScope = enter
      this.#open()
      return enter.apply(scope, args as Parameters<typeof enter>) as never
    }
  }

  #open(): void {
    if (running.length === 0) process.on('uncaughtException', report)
    running.push(this)
  }
}
