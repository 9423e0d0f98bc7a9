// Puts very many keys into a store in seconds: into Redis as one stream of commands in its own protocol. The store's own code
// makes the commands, so that their form is the product's.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createKey, hashOf, randomBase62 } from '../src/keys/key-form.ts'
import type { RedisClient } from '../src/stores/redis/connection.ts'
import { redisKeyNames } from '../src/stores/redis/key-names.ts'
import { redisKeys } from '../src/stores/redis/keys.ts'
import type { KeyRecord, KeyStore } from '../src/stores/store.ts'
import { until } from '../test/support/until.ts'

/** Keys in the order of their creation, as callers present them and as the store names them. */
export type WrittenKeys = { readonly presented: readonly string[]; readonly ids: readonly string[] }

const keysPerWrite = 1_000

/** @param redisPort of the store, if it is Redis: of a server that has the store's format already */
export const writeKeys = async (
  store: KeyStore,
  keys: number,
  tier: string,
  redisPort?: number,
  keysPerSubscriber = 100,
): Promise<WrittenKeys> => {
  const [presented, ids]: [string[], string[]] = [[], []]
  const stream = redisPort === undefined ? undefined : await openStream(redisPort)
  const target = stream?.keys ?? store
  let subscriberId = ''
  for (let i = 0; i < keys; i++) {
    if (i % keysPerSubscriber === 0) {
      subscriberId = `sub_${randomBase62(12)}`
      await store.ensureSubscriber({
        id: subscriberId,
        name: `Subscriber ${i}`,
        createdAt: i,
        revokedAt: null,
      })
    }
    const key = createKey()
    const record: KeyRecord = {
      id: `key_${randomBase62(12)}`,
      hash: hashOf(key),
      subscriberId,
      tier,
      limit: null,
      createdAt: i,
      revokedAt: null,
      expiresAt: null,
      externalId: null,
      formers: [],
    }
    await target.addKey(record)
    presented.push(key)
    ids.push(record.id)
    if (i % keysPerWrite === keysPerWrite - 1) await stream?.flush()
  }
  await stream?.end()
  return { presented, ids }
}

type Value = string | number
const bulk = (value: Value): string => `$${Buffer.byteLength(String(value))}\r\n${value}\r\n`
const encoded = (words: readonly Value[]): string => `*${words.length}\r\n${words.map(bulk).join('')}`

/** The store of keys over a client that sends without waiting for replies. */
const openStream = async (port: number) => {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let [sent, pending] = [0, '']
  const replies = countReplies(socket)
  const send = async (...words: Value[]): Promise<void> => {
    sent += 1
    pending += encoded(words)
  }
  const client = {
    defineCommand: () => {},
    abohawaReadHash: async () => [],
    abohawaWrite: (name: string, _: number, ...fields: Value[]) => send('HSET', name, ...fields),
    set: (name: string, value: Value) => send('SET', name, value),
    zadd: (name: string, ...scores: Value[]) => send('ZADD', name, ...scores),
  }
  const keys = redisKeys({
    redis: client as unknown as RedisClient,
    names: redisKeyNames('abohawa:'),
    observer: { recordRefused: () => {} } as never,
  })
  const flush = async (): Promise<void> => {
    const isFull = !socket.write(pending)
    pending = ''
    if (isFull) await once(socket, 'drain')
  }
  return {
    keys,
    flush,
    end: async () => {
      await flush()
      await replies(sent)
      socket.destroy()
    },
  }
}

/** Each of these commands is answered in one line. @returns waits for so many replies; throws on an error among them */
const countReplies = (socket: Socket): ((count: number) => Promise<void>) => {
  let [replies, fault] = [0, '']
  socket.setEncoding('latin1').on('data', (text: string) => {
    for (const line of text.split('\n')) if (line.startsWith('-')) fault = line
    replies += text.split('\n').length - 1
  })
  return async count => {
    await until('Redis has answered each command', () => replies >= count || fault !== '', 120_000, 10)
    if (fault !== '') throw new Error(`Redis refused a key: ${fault}`)
  }
}
