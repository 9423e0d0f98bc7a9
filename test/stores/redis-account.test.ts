// Without it the documented rights of the Redis user could be too few, or a TLS fault could end without a sentence.

import t from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { localCertificate } from '../support/http2-client.ts'
import { freePort } from '../support/listening.ts'
import { account, grantedCommands, makeAccount, refusals } from '../support/redis-account.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { storeContract } from './store-contract.ts'
import { messagesArrive } from './usage-instance.ts'

skipFileIf(t, withoutOwnRedis)

const { cert, key } = localCertificate
const tlsPort = await freePort()
const server = await startRedis(t, {
  args: [
    ...['--tls-port', String(tlsPort), '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', cert, '--tls-key-file', key],
  ],
})
await makeAccount(server.admin)
await server.admin.config('RESETSTAT')

const place = {
  ...patient,
  url: `rediss://${account.user}:${account.password}@localhost:${tlsPort}/3`,
  ca: cert,
}
let opened = 0
const open = async () => {
  const store = await openRedisStore({ ...place, prefix: `abohawa:${opened++}:` }, quiet)
  // As a gateway does, which hears of the counts of others.
  store.onUsage(() => {})
  return store
}

storeContract(t, 'TLS, a user and a database', open)

t.test('messages of the store arrive', async () => {
  const store = await open()
  await messagesArrive(store)
  await store.close()
})

t.test('the user that the documents name needs every command it may run', async t => {
  const used = [...(await server.admin.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=/gm)].map(
    ([, name]) => name,
  )
  for (const command of grantedCommands(false)) t.ok(used.includes(command), `${command} is needed`)
})

t.test('all lies in the database of the URL, and nothing was refused', async t => {
  t.strictSame(await refusals(server.admin), [])
  t.match(await server.admin.info('keyspace'), /^db3:/m)
  t.notMatch(await server.admin.info('keyspace'), /^db0:/m)
})

t.test('a fault stops the start with a sentence', async t => {
  const port = await freePort()
  for (const [other, message] of [
    [{ ca: null }, /^redis\.url names localhost:\d+, which can't be used: .*self.signed/],
    [
      { ca: 'missing.pem' },
      /^redis\.ca is missing\.pem, which can't be read as a certificate in PEM form: ENOENT/,
    ],
    [{ ca: 'package.json' }, /^redis\.ca is package\.json, which can't be read as a certificate/],
    [{ url: place.url.replace('SECRET', 'wrong') }, /can't be used: WRONGPASS/],
    [{ url: `redis://localhost:${tlsPort}`, ca: null }, /can't be used: read ECONNRESET/],
    [
      { url: place.url.replace(String(tlsPort), String(server.port)), connectTimeoutMs: 1_000 },
      /can't be used: connect ETIMEDOUT/,
    ],
    [{ url: `rediss://localhost:${port}` }, /can't be used: .*ECONNREFUSED/],
  ] as const)
    await t.rejects(openRedisStore({ ...place, prefix: 'abohawa:', ...other }, quiet), {
      name: 'InputError',
      message,
    })
})
