// A gateway process at another time: `node shifted-gateway.ts <shift> <skew>`, both in milliseconds. The shift applies to
// its store's clock, and the skew to its own clock on top of that. Settings come from the environment.

import { pino } from 'pino'
import { loadConfig } from '../../src/config/load.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { openStore } from '../../src/stores/open-store.ts'

const [shift = 0, skew = 0] = process.argv.slice(2).map(Number)

const gateway = await startGateway(loadConfig({ files: [], env: process.env }), {
  clock: { now: () => Date.now() + shift + skew },
  log: pino({ level: 'error' }),
  lines: process.stdout,
  open: async (...given) => {
    const store = await openStore(...given)
    return { ...store, time: async () => (await store.time()) + shift }
  },
})
process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url: gateway.apiUrl })}\n`)
process.once('SIGTERM', () => void gateway.close())
