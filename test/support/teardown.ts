// What a test offers for its teardowns, and so does the scope of a measurement.

/** Collects teardowns, which run last first. */
export type Teardown = { teardown(fn: () => unknown): void }

/** Teardowns that run when a stack is disposed of. */
export const scopeOf = (stack: AsyncDisposableStack): Teardown => ({
  teardown: fn => stack.defer(async () => void (await fn())),
})

/** Runs what may need a teardown, and then its teardowns. */
export const inScope = async <Of>(act: (scope: Teardown) => Promise<Of>): Promise<Of> => {
  await using stack = new AsyncDisposableStack()
  return await act(scopeOf(stack))
}
