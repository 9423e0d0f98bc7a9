// A process that has no descriptor left, calls providers at the URLs it is given, and prints how each call ended. For
// provider-call.test.ts.

import { openSync } from 'node:fs'
import { devNull } from 'node:os'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { manualClock } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from '../support/open-meteo.ts'

/** The error of a call; empty where there was none. */
export type Ended = { readonly code?: string; readonly message?: string }

const urls = process.argv.slice(2)
const request = { path: '/', maxBytes: 1 << 20 }
const callOf = (url: string) =>
  createProviderCall(callOptions(url), { protocol: openMeteo, clock: manualClock() })

// What a call loads at first is loaded.
for (const url of urls) {
  const call = callOf(url)
  await call.text(request)
  await call.close()
}
const ended: Ended[] = []
const calls = urls.map(callOf)
try {
  for (;;) openSync(devNull, 'r')
} catch {}
for (const call of calls) {
  const end = await call.text(request).then(
    () => ({}),
    ({ code, message }) => ({ code, message }),
  )
  ended.push(end)
}
process.stdout.write(JSON.stringify(ended))
