// A process that has no descriptor left calls providers at the URLs it is given: once before anything was called, again when it has
// descriptors, and once more without, when all is loaded. Prints how each call ended. For provider-call.test.ts.

import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { createProviderCall, type ProviderCall } from '../../src/provider/provider-call.ts'
import { manualClock } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from './provider-set-up.ts'

/** The error of a call; empty where there was none. */
export type Ended = { readonly code?: string; readonly message?: string }

const urls = process.argv.slice(2)
const request = { path: '/', maxBytes: 1 << 20 }
const callOf = (url: string) =>
  createProviderCall(callOptions(url), { protocol: openMeteo, clock: manualClock() })
const endOf = (call: ProviderCall): Promise<Ended> =>
  call.text(request).then(
    () => ({}),
    ({ code, message }) => ({ code, message }),
  )
/** Returns the function that gives them back. */
const takeAllDescriptors = (): (() => void) => {
  const taken: number[] = []
  try {
    for (;;) taken.push(openSync(devNull, 'r'))
  } catch {}
  return () => {
    for (const one of taken) closeSync(one)
  }
}

const ended: Ended[] = []
const calls = urls.map(callOf)
const giveBack = takeAllDescriptors()
for (const call of calls) ended.push(await endOf(call))
giveBack()
for (const call of calls) {
  ended.push(await endOf(call))
  await call.close()
}
const later = urls.map(callOf)
takeAllDescriptors()
for (const call of later) ended.push(await endOf(call))
process.stdout.write(JSON.stringify(ended))
