// /keys, /subscribers and /usage: key administration for programs. Only the response that creates a key contains it.

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import {
  type Administration,
  type AdministrationParts,
  createAdministration,
} from '../../keys/administration.ts'
import { parseDuration } from '../../keys/key-expiry.ts'
import { maxRate } from '../../stores/records.ts'
import type { KeyPanel } from '../key-panel.ts'
import { jsonType } from './refusal.ts'
import { type BodyForm, post, type Query, textIn, wholeIn } from './request-input.ts'

export type OpsKeys = {
  /** With the current tiers. */
  parts(): AdministrationParts
  readonly panel: KeyPanel
  /** A change was made; `id` names a key or a subscriber. */
  changed(action: string, id: string): void
}

type OfId = { Params: { id: string } }

const maxLimit = 999_999_999_999
const list = z.array(z.string()).nullable().exactOptional()
const rate = z.int().min(1).max(maxRate).nullable().exactOptional()
const restrictions = z.strictObject({ origins: list, addresses: list, endpoints: list })
const rates = z.strictObject({ perSecond: rate, burst: rate, perMinute: rate })
const bodies = {
  create: {
    schema: z.strictObject({
      subscriber: z.string(),
      tier: z.string(),
      externalId: z.string().optional(),
      limit: z.int().min(1).max(maxLimit).optional(),
      expires: z.string().optional(),
      restrictions: restrictions.optional(),
      rates: rates.optional(),
    }),
    allowed:
      'JSON such as {"subscriber":"Dhaka Tribune","tier":"starter"} (optional: externalId, limit, expires, restrictions, rates)',
  },
  rotate: {
    schema: z.strictObject({ overlap: z.string().default('24h') }).default({ overlap: '24h' }),
    allowed: 'empty or JSON such as {"overlap":"24h"}',
  },
  tier: { schema: z.strictObject({ tier: z.string() }), allowed: 'JSON such as {"tier":"business"}' },
  limit: {
    schema: z.strictObject({ limit: z.int().min(1).max(maxLimit).nullable() }),
    allowed: `JSON such as {"limit":2500} (1 to ${maxLimit}), or {"limit":null} for the limit of the tier`,
  },
  expire: {
    schema: z.strictObject({ expires: z.string() }),
    allowed: 'JSON such as {"expires":"2027-01-31"}, {"expires":"90d"} or {"expires":"never"}',
  },
  restrictions: {
    schema: restrictions,
    allowed:
      'JSON such as {"origins":["https://app.example.org"],"addresses":["203.0.113.0/24"],"endpoints":null} (null lifts a restriction, a missing one stays)',
  },
  rates: {
    schema: rates,
    allowed: `JSON such as {"perSecond":5,"burst":20,"perMinute":null} (1 to ${maxRate}; null lifts a limit, a missing one stays)`,
  },
  none: { schema: z.strictObject({}).default({}), allowed: 'empty' },
} as const

const usually = 100
const most = 1_000
const maxDays = 400
const longestQuery = 100

export const registerKeys = (app: FastifyInstance, keys: OpsKeys): void => {
  app.register(async own => {
    own.addHook('onRoute', route => {
      route.config = { ...route.config, administers: true }
    })
    addRoutes(own, keys)
  })
}

const addRoutes = (app: FastifyInstance, { parts, panel, changed }: OpsKeys): void => {
  const administration = (): Administration => createAdministration(parts())

  app.get<Query>('/keys', async ({ query }) => {
    const { from, limit } = partIn(query)
    return administration().partOfKeys(from, limit, textIn(query, 'filter'))
  })
  app.get<OfId>('/keys/:id', async ({ params: { id } }) => administration().showKey(id))
  app.get<OfId & Query>('/keys/:id/usage', async ({ params: { id }, query }) =>
    administration().usage(id, wholeIn(query, 'days', 30, 1, maxDays)),
  )
  app.get<Query>('/usage', async ({ query }) => {
    const { from, limit } = partIn(query)
    return administration().partOfUsage(from, limit, wholeIn(query, 'days', 1, 1, maxDays))
  })
  app.get<Query>('/usage/keys', async ({ query }) => {
    const q = (textIn(query, 'q') ?? '').trim()
    if (q.length > longestQuery)
      throw new InputError(`q must have at most ${longestQuery} characters, got ${q.length}`)
    return panel(q)
  })
  app.get('/subscribers', (_, reply) =>
    reply.type(jsonType).send(Readable.from(arrayIn(administration().subscribersInParts()))),
  )
  app.get<OfId>('/subscribers/:id', async ({ params: { id } }) => administration().showSubscriber(id))

  post(app, '/keys', bodies.create, async (request, reply) => {
    const keys = administration()
    const [fault] = await keys.faultsOf([request])
    if (fault) throw new InputError(fault.message)
    for await (const [created] of keys.createKeys([request])) {
      if (!created) continue
      if (!created.existed) {
        reply.code(201)
        changed('create', created.id)
      }
      return created
    }
    throw new Error('no key was created')
  })

  const change = <Body>(
    of: 'keys' | 'subscribers',
    action: string,
    form: BodyForm<Body>,
    act: (keys: Administration, id: string, body: Body) => Promise<{ id: string }>,
  ): void =>
    post(app, `/${of}/:id/${action}`, form, async (body, _reply, { id }) => {
      const result = await act(administration(), id, body)
      changed(of === 'keys' ? action : `${action} subscriber`, result.id)
      return result
    })
  change('keys', 'rotate', bodies.rotate, (keys, id, { overlap }) => {
    const overlapMs = parseDuration(overlap)
    if (overlapMs === undefined)
      throw new InputError(`overlap must be a duration such as 24h, 7d or 0s, got ${quoted(overlap)}`)
    return keys.rotateKey(id, overlapMs)
  })
  change('keys', 'tier', bodies.tier, (keys, id, { tier }) => keys.setKey(id, { tier }))
  change('keys', 'limit', bodies.limit, (keys, id, { limit }) => keys.setKey(id, { limit }))
  change('keys', 'expire', bodies.expire, (keys, id, { expires }) => keys.setKey(id, { expires }))
  change('keys', 'restrictions', bodies.restrictions, (keys, id, body) =>
    keys.setKey(id, { restrictions: body }),
  )
  change('keys', 'rates', bodies.rates, (keys, id, body) => keys.setKey(id, { rates: body }))
  change('keys', 'revoke', bodies.none, (keys, id) => keys.revokeKey(id))
  change('keys', 'reinstate', bodies.none, (keys, id) => keys.reinstateKey(id))
  change('subscribers', 'revoke', bodies.none, (keys, id) => keys.revokeSubscriber(id))
  change('subscribers', 'reinstate', bodies.none, (keys, id) => keys.reinstateSubscriber(id))
}

/** An array as JSON, in chunks, because very many subscribers are megabytes. */
async function* arrayIn(parts: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  let before = '['
  for await (const part of parts) {
    yield before + JSON.stringify(part).slice(1, -1)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

/** The requested page of a list: `from` is the `next` of the previous page. */
const partIn = (query: Query['Querystring']) => ({
  from: wholeIn(query, 'from', 0, 0, 999_999_999),
  limit: wholeIn(query, 'limit', usually, 1, most),
})
