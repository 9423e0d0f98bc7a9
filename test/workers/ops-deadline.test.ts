// How long the process in front of the workers waits for the answer of one: longer than the worker itself does.

import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { opsOptions } from '../../src/workers/serve-workers.ts'

t.test('a worker may take the time of the provider and half a minute, and is waited for', async t => {
  for (const timeout of ['30s', '3m', '10m']) {
    const config = loadConfig({ files: [], env: { ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: timeout } })
    const { answerWithinMs } = opsOptions(config)
    t.ok(answerWithinMs >= 60_000 + config.provider.totalTimeoutMs, `${timeout}: ${answerWithinMs} ms`)
  }
})
