// Without this, commands could guess why a gateway did not answer, instead of giving its own reason.

import t from 'tap'
import { runCommand } from '../support/process.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'

const idle = {
  ...{ state: 'idle', target: '', cells: 0, toLoad: 0, weight: 0, loaded: 0, fresh: 0, failed: [] },
  ...{ stoppedBy: null, reason: null },
}

t.test('a gateway that restarts while it warms is not waited for without end', async t => {
  const { url } = await startScriptedProvider(t, ({ method }, response) => {
    const state = method === 'POST' ? 'running' : 'idle'
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...idle, state }))
  })
  const { code, stdout, stderr } = await runCommand(['cache', 'warm', '--top', '5', '--gateway', url])
  t.strictSame([code, stdout], [1, ''])
  t.match(stderr, `abohawa: the gateway at ${url} has restarted and no longer warms: run the command again`)
})

const show = ['cache', 'show', 'district/3026']
const hosts = 'the host header must be an IP address or a name in ops.allowedHosts, got "gw:9090"'
const other = 'it answered 404, and is no gateway of this version'

t.test('what a gateway refuses is said in its words, and what is none is named', async t => {
  let [status, error] = [409, '']
  const { url } = await startScriptedProvider(t, (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  const https = url.replace('http:', 'https:')
  const cases: [args: string[], status: number, error: string, gateway: string, said: string | RegExp][] = [
    [['status'], 409, 'the fleet is being moved', url, 'refused: the fleet is being moved\n'],
    [show, 403, hosts, url, `refused: ${hosts}\n`],
    [['status'], 503, 'the fleet is being moved', url, 'it answered 503: the fleet is being moved'],
    [show, 404, 'nothing', url, other],
    [['status'], 404, 'nothing', url, other],
    [['status'], 0, '', 'http://127.0.0.1:9', /ECONNREFUSED/],
    [show, 200, '', https, ': it speaks plain HTTP; use http:// instead of https://\n'],
  ]
  for (const [args, answered, text, gateway, said] of cases) {
    status = answered
    error = text
    const { code, stdout, stderr } = await runCommand([...args, '--gateway', gateway])
    t.strictSame([code, stdout], [1, ''], `${args.join(' ')} ${gateway} ${answered}`)
    t.match(stderr, said)
    const isRefusal = answered === 409 || answered === 403
    const begin = isRefusal ? `the gateway at ${gateway} ` : `no gateway answered at ${gateway} (--gateway): `
    t.ok(stderr.startsWith(`abohawa: ${begin}`), stderr)
  }
})
