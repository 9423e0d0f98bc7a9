// What commands say of a gateway that is there and refuses: its own words, and not that it is of another version.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { runCommand } from '../support/process.ts'

t.test('what a gateway refuses is said in its words', async t => {
  const refusal = { error: 'the fleet is being moved', code: 'busy' }
  let status = 409
  const server = createServer((_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(refusal)),
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const gateway = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const show = () => runCommand(['status', '--gateway', gateway])
  t.match(await show(), {
    code: 1,
    stderr: `abohawa: the gateway at ${gateway} refused: the fleet is being moved\n`,
  })
  status = 503
  t.match(await show(), { code: 1, stderr: 'it answered 503: the fleet is being moved' })
  status = 404
  t.match(await show(), { code: 1, stderr: 'is no gateway of this version' })
})
