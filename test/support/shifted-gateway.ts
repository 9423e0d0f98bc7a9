// A gateway process at another time: `node shifted-gateway.ts <skew>`, in milliseconds. The skew applies to its own clock; a shift,
// which comes as a message once it serves, to that and to its store's clock. Settings come from the environment.

import { pino } from 'pino'
import { loadConfig } from '../../src/config/load.ts'
import { startGateway } from '../../src/gateway.ts'
import { openStore } from '../../src/stores/open-store.ts'

const [skew = 0] = process.argv.slice(2).map(Number)
let shift = 0

const gateway = await startGateway(loadConfig({ files: [], env: process.env }), {
  clock: { now: () => Date.now() + shift + skew },
  log: pino({ level: 'error' }),
  lines: process.stdout,
  dropped: () => 0,
  open: async (...given) => {
    const store = await openStore(...given)
    return { ...store, time: async () => (await store.time()) + shift }
  },
})
for (const [listener, url] of Object.entries({ api: gateway.apiUrl, ops: gateway.opsUrl }))
  process.stdout.write(`${JSON.stringify({ msg: 'listening', listener, url })}\n`)
process.on('message', by => {
  shift = Number(by)
  process.send?.('shifted')
})
process.once('SIGTERM', () => void gateway.close())
