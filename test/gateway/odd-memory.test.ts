// Without it, a gateway could fail to start with a memory size that is no round number.

import t from 'tap'
import { startProviderHere } from '../support/provider.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t, undefined, null)

for (const size of ['1.3MiB', '100.1MiB', '1.2GiB'])
  t.test(`a gateway starts and answers with cache.memory ${size}`, async t => {
    const gateway = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CACHE__MEMORY: size } })
    t.equal((await gateway.get('/locations?type=district')).status, 200)
  })
