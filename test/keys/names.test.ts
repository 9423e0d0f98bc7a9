// Names of subscribers: which are valid, and which are refused with one sentence.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { createKey } from '../../src/keys/key-form.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'

const clock = manualClock()
const store = openEmbeddedStore(':memory:', clock)
const administration = createAdministration({
  store,
  tiers: { free: 100 },
  calendar: createCalendar('Asia/Dhaka'),
  clock,
})

const signs = [
  ...'\u0000\u0007\u001b\n\u007f\u0080\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ufeff',
  '\ud83d',
]
for (const sign of signs)
  t.test(`U+${sign.charCodeAt(0).toString(16)} in a name is refused`, async t => {
    await t.rejects(administration.createKey(`A${sign}B`, 'free'), {
      name: 'InputError',
      message:
        /^the subscriber's name is "A\\\w+B"; allowed: 1 to 100 characters on one line, none of them a control or an invisible mark of direction$/,
    })
    t.strictSame(await administration.listSubscribers(), [])
  })

t.test('a key is no name, and is not repeated', async t => {
  await t.rejects(administration.createKey(`for ${createKey()}`, 'free'), {
    message: 'the subscriber\'s name is "for svc_live_…"; names can\'t hold an API key',
  })
})

t.test('a sentence about a name is short and printable', async t => {
  for (const name of [hostileText, 'x'.repeat(1_000_000), `sub_${hostileText.trim()}`])
    for (const act of [
      () => administration.createKey(name, 'free'),
      () => administration.nearlyNamed(name),
      () => administration.createKey('A', name),
      () => administration.revokeSubscriber(name),
      () => administration.showKey(name),
    ]) {
      const { message } = await act().then(
        () => t.fail('is refused'),
        error => error,
      )
      t.equal(rawControlIn(message), undefined)
      t.notMatch(message, '\n')
      t.ok(message.length < 1_500, `${message.length} characters`)
    }
})

t.test('names of every script are given, with the joiners of Bengali', async t => {
  for (const name of ['Dhaka Tribune', 'প্রথম আলো', 'র\u200d্যাব ক্\u200cষ', 'الجزيرة', 'O’Brien & Søn', '👍🏽'])
    t.equal((await administration.createKey(name, 'free')).subscriber, name.normalize('NFC'))
})
