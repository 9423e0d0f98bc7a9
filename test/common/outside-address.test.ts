// Without it a command could be led to a metadata service or an inner address, by a name, a spelling or a redirect.

import dns from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { isIP } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkAddresses } from '../../src/common/outside-address.ts'
import { connectTo, targetOf } from '../../tools/load/replay/target.ts'
import { listenOn } from '../support/listening.ts'
import { checkOutput, runCommands } from '../support/printed.ts'

const forbidden = `
  169.254.1.1 169.254.169.254 0.0.0.0 0.1.2.3 224.0.0.251 255.255.255.255 100.100.100.200 :: fe80::1 ff02::1
  fd00:ec2::254 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::a9fe:a9fe 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1
`
const remote = '93.184.215.14 100.64.0.1 2001:db8::1 64:ff9b::7f00:1 2002:7f00:1::1 ::ffff:8.8.8.8'.split(' ')
const near = '127.0.0.1 127.9.9.9 10.1.2.3 172.16.0.1 192.168.1.1 ::1 fd12::1 ::ffff:127.0.0.1'.split(' ')

const urlOf = (address: string): string => `http://${isIP(address) === 6 ? `[${address}]` : address}:8080`

const noGateway = {
  name: 'InputError',
  message: /^the target .* leads to .* link-local, multicast, reserved or a metadata/,
}
const isAway = { message: /neither this machine nor in a private network/ }

t.test('an address is near, away, or one that no gateway has, in any form', async t => {
  for (const address of forbidden.trim().split(/\s+/))
    for (const allowRemote of [false, true])
      await t.rejects(targetOf(urlOf(address), { allowRemote }), noGateway, address)
  for (const address of remote) {
    await t.rejects(targetOf(urlOf(address)), isAway, address)
    t.ok(await targetOf(urlOf(address), { allowRemote: true }), address)
  }
  for (const address of near) t.ok(await targetOf(urlOf(address)), address)
  // 127.0.0.1 and 169.254.169.254 as one number, octal and hexadecimal.
  for (const host of ['2130706433', '0x7f.1', '017700000001']) t.ok(await targetOf(`http://${host}`), host)
  for (const host of ['2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '0', '169.254.43518'])
    await t.rejects(targetOf(`http://${host}`), { message: / leads to / }, host)
})

const nameLeadsTo = (t: Test, answers: readonly (readonly string[])[]): { asked(): number } => {
  const { lookup } = dns.promises
  let asked = 0
  t.teardown(() => {
    dns.promises.lookup = lookup
    syncBuiltinESMExports()
  })
  const answer = async () => {
    const found = answers[Math.min(asked, answers.length - 1)] ?? []
    asked += 1
    return found.map(address => ({ address, family: isIP(address) }))
  }
  dns.promises.lookup = answer as unknown as typeof lookup
  syncBuiltinESMExports()
  return { asked: () => asked }
}

t.test('each address of a name must be near, not the first alone', async t => {
  nameLeadsTo(t, [['127.0.0.1', '93.184.215.14'], ['127.0.0.1', '169.254.169.254'], []])
  await t.rejects(targetOf('http://some.test'), isAway)
  await t.rejects(targetOf('http://some.test', { allowRemote: true }), { message: /leads to 169\.254\.169/ })
  await t.rejects(targetOf('http://some.test'), { message: /neither this machine/ })
})

const listening = async (t: Test, answer: Parameters<typeof createServer>[1]) => {
  const server = createServer({}, answer)
  let connections = 0
  server.on('connection', () => {
    connections += 1
  })
  return { port: await listenOn(t, server), connections: () => connections }
}

t.test('a name is resolved once, and every connection goes to what was checked', async t => {
  const server = await listening(t, (_request, response) => response.end())
  const name = nameLeadsTo(t, [['127.0.0.1'], ['93.184.215.14']])
  // A worker gets the target as a message.
  const target = structuredClone(await targetOf(`http://some.test:${server.port}`))
  for (let i = 0; i < 3; i++) {
    const socket = connectTo(target, () => {})
    await once(socket, 'connect')
    t.equal(socket.remoteAddress, '127.0.0.1')
    socket.destroy()
  }
  t.equal(name.asked(), 1)
})

t.test('a replay follows no redirect, and commands refuse such addresses before a packet', async t => {
  const elsewhere = await listening(t, (_request, response) => response.end())
  const server = await listening(t, (_request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${elsewhere.port}/` }).end()
  })
  const line = '{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/api/v1/weather/district/3026"}\n'
  const file = join(t.testdir({ file: line.repeat(5) }), 'file')
  const ways = [[], ['--http', '1.1', '--workers', '2']]
  const runs = await runCommands(
    ways.map(more => ['replay', file, '--target', `http://127.0.0.1:${server.port}`, ...more, '--json']),
  )
  for (const { code, stdout, stderr } of runs)
    t.match([code, JSON.parse(stdout).statuses], [0, { 302: 5 }], stderr)
  t.ok(server.connections() > 0)
  t.equal(elsewhere.connections(), 0)

  const gateway = ['--ops', 'http://169.254.169.254']
  await checkOutput(
    t,
    [
      ['status', '--gateway', 'http://169.254.169.254'],
      ['cache', 'show', '23.8,90.4', '--gateway', 'http://[fe80::1]:9090'],
      ['status', '--gateway', 'http://0:9090'],
      ['replay', file, '--target', `http://127.0.0.1:${server.port}`, ...gateway],
      ['replay', file, '--target', `http://127.0.0.1:${server.port}`, '--ops', 'http://93.184.215.14'],
    ],
    { code: 2 },
  )
  await checkOutput(t, [['replay', file, '--target', 'http://169.254.169.254']], { code: 1 })
  t.throws(() => checkAddresses('it', ['224.0.0.1'], true), { message: /^it leads to 224\.0\.0\.1/ })
})
