// Without it a filter of `keys list` could leave out or include the wrong keys.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { keyFilterIn } from '../../src/keys/key-filter.ts'
import type { KeyUsage, ListedKey } from '../../src/keys/listed-key.ts'

const now = Date.parse('2026-11-22T06:00:00Z')
const calendar = createCalendar('Asia/Dhaka')
const plain: ListedKey & KeyUsage = {
  ...{ id: 'key_1', externalId: null, subscriber: 'Dhaka Tribune', subscriberId: 'sub_1' },
  ...{ tier: 'starter', test: false, limit: 1_000, ownLimit: false, status: 'active' },
  ...{ createdAt: '2026-11-02T00:00:00.000Z', expiresAt: null, revokedAt: null, formerKeyUntil: null },
  ...{ restrictions: null, rates: null },
  ...{ lastUsedOn: '2026-11-20', usedToday: 0 },
}
const matches = (filter: string, change: Partial<typeof plain> = {}) =>
  keyFilterIn(filter, calendar, now).matches({ ...plain, ...change })

const soon = { expiresAt: '2026-12-01T18:00:00.000Z' }
const cases: [filter: string, holds: boolean, change?: Partial<typeof plain>][] = [
  ['', true],
  ['tier=starter', true],
  ['tier=free', false],
  ['tier!=free', true],
  ['tier=starter status=active', true],
  ['tier=starter status=revoked', false],
  ['status=subscriber-revoked', true, { status: 'subscriber revoked' }],
  ['status!=expired', false, { status: 'expired' }],
  ['status=subscriber-missing', true, { status: 'subscriber missing' }],
  ['status=active', true],
  ['subscriber=~dhaka', true],
  ['subscriber=~TRIB', true],
  ['subscriber=~\u0985\u09beলো', true, { subscriber: 'প্রথম আলো' }],
  ['subscriber=~Star', false],
  ['subscriber="Dhaka Tribune"', true],
  ['subscriber="Dhaka"', false],
  ['subscriber=~"a t" tier=starter', true],
  ['subscriber=~at', false],
  ['external_id=none', true],
  ['external_id=none', false, { externalId: 'a' }],
  ['external_id=~A-', true, { externalId: 'a-1' }],
  ['id=key_1', true],
  ['limit>=1000', true],
  ['limit<1000', false],
  ['limit<=1000', true],
  ['limit<=999', false],
  ['limit>1000', false],
  ['limit!=1000', false],
  ['limit>0', false, { limit: null }],
  ['used=0', true],
  ['used!=0', true, { usedToday: 6 }],
  ['used>5', true, { usedToday: 6 }],
  ['expires<30d', false],
  ['expires>30d', true],
  ['expires=never', true],
  ['expires<30d', true, soon],
  ['expires<9d', false, soon],
  ['expires=2026-12-01', true, soon],
  ['expires<2026-12-01', false, soon],
  ['expires!=never', true, soon],
  ['expires=2026-12-02', true, { expiresAt: '2026-12-01T18:00:00.001Z' }],
  ['expires<1h', true, { expiresAt: '2026-01-01T00:00:00.000Z' }],
  ['created<30d', true],
  ['created>30d', false],
  ['created=2026-11-02', true],
  ['last_used<7d', true],
  ['last_used>7d', false],
  ['last_used>7d', true, { lastUsedOn: null }],
  ['last_used>7d', true, { lastUsedOn: '2026-11-10' }],
  ['last_used=never', true, { lastUsedOn: null }],
  ['last_used=never', false],
  ['last_used>=2026-11-20', true],
  ['last_used<2026-11-20', true, { lastUsedOn: null }],
  [`tier!=${'x'.repeat(494)}`, true],
]

t.test('terms hold by field, operator and value', async t => {
  for (const [filter, holds, change] of cases)
    t.equal(matches(filter, change), holds, `${filter || 'no term'} ${JSON.stringify(change ?? {})}`)
})

t.test('only terms on the usage wait for it', async t => {
  t.equal(keyFilterIn('tier=free used=0', calendar, now).mayMatch(plain), false)
  t.equal(keyFilterIn('tier=starter used>9', calendar, now).mayMatch(plain), true)
})

t.test('a wrong term is named, with what is allowed', async t => {
  const all =
    'but a term is a field \\(id, external_id, subscriber, .*\\), an operator \\(=~ .*\\) and a value, such as tier='
  for (const [filter, sentence] of [
    ['colour=red', `the filter has "colour=red", ${all}`],
    ['constructor=x', all],
    ['tier', all],
    ['tier=', all],
    ['tier<free', 'the filter has "tier<free", but tier takes = \\(is\\)'],
    [
      'status=on',
      'status takes = or != and one of active, expired, revoked, subscriber-revoked, subscriber-missing$',
    ],
    ['used=~1', 'used takes an integer'],
    ['used=-1', 'used takes an integer'],
    ['expires<soon', 'expires takes a day such as 2027-01-31 or a duration such as 30d'],
    ['expires<never', 'expires takes a day'],
    ['created=2026-02-30', 'created takes a day'],
    ['x'.repeat(501), 'the filter must have at most 500 characters, got 501'],
    [`tier=svc_live_${'x'.repeat(38)} y`, '"y"'],
  ] as const)
    t.throws(() => matches(filter), { name: 'InputError', message: new RegExp(sentence) }, filter)
})
