// The body of what a key reads of itself, as a schema: each field with its unit and meaning in both languages. The other bodies are
// in schemas.ts.

import * as z from 'zod'
import { component, field } from './texts.ts'

/** An instant in ISO 8601 and UTC. */
export const instant = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const rate = z.int().min(1).nullable()
const bound = z.array(z.string()).nullable()

export const keySchema = component(
  'Key',
  'A key, as it may read of itself.',
  'একটি কী, নিজের যা জানতে পারে।',
  z.strictObject({
    id: field(
      z.string(),
      'Names the key to the operator; it is not the key.',
      'পরিচালকের কাছে কী-র নাম; কী নয়।',
    ),
    tier: field(z.string(), 'The plan of the key.', 'কী-র প্ল্যান।'),
    limit: field(z.int().min(1), 'The daily quota.', 'দৈনিক কোটা।', 'requests'),
    used: field(
      z.int().min(0).nullable(),
      'Units used today; null while they are not known.',
      'আজ ব্যবহৃত একক; জানা না গেলে null।',
      'requests',
    ),
    remaining: field(
      z.int().min(0).nullable(),
      'Units left today; null while they are not known.',
      'আজ বাকি একক; জানা না গেলে null।',
      'requests',
    ),
    reason: field(
      z.string().nullable(),
      'Why the counts are null: `store_unavailable` while the gateway does not reach their store. Null where they are exact.',
      'গণনা কেন null: গেটওয়ে তার ভান্ডারে পৌঁছাতে না পারলে `store_unavailable`। গণনা সঠিক হলে null।',
    ),
    reset_at: field(instant, 'The next local midnight, in UTC.', 'পরবর্তী স্থানীয় মধ্যরাত, UTC-তে।', 'iso8601'),
    rates: field(
      z
        .strictObject({
          per_second: field(rate, 'Requests a second; null for no limit.', 'সেকেন্ডে অনুরোধ; সীমা না থাকলে null।'),
          burst: field(rate, 'Requests at once; null for no limit.', 'একসঙ্গে অনুরোধ; সীমা না থাকলে null।'),
          per_minute: field(rate, 'Requests a minute; null for no limit.', 'মিনিটে অনুরোধ; সীমা না থাকলে null।'),
        })
        .nullable(),
      'Limits by the second and the minute; null where there are none.',
      'সেকেন্ড ও মিনিটের সীমা; না থাকলে null।',
    ),
    restrictions: field(
      z
        .strictObject({
          origins: field(bound, 'Origins of web pages; null for any.', 'ওয়েব পাতার উৎস; যেকোনোটি হলে null।'),
          addresses: field(bound, 'Addresses and ranges; null for any.', 'ঠিকানা ও পরিসর; যেকোনোটি হলে null।'),
          endpoints: field(bound, 'Names of endpoints; null for all.', 'এন্ডপয়েন্টের নাম; সব হলে null।'),
        })
        .nullable(),
      'What the key is bound to; null where it is not.',
      'কী-টি যাতে সীমিত; না হলে null।',
    ),
    created_at: field(instant, 'When the key was created, in UTC.', 'কী কবে তৈরি, UTC-তে।', 'iso8601'),
    expires_at: field(
      instant.nullable(),
      'When it ends, in UTC, by its expiry or because a newer one replaces it; null for never.',
      'মেয়াদ বা নতুন কী-র কারণে কবে শেষ, UTC-তে; কখনো না হলে null।',
      'iso8601',
    ),
    days: field(
      z
        .array(
          z.strictObject({
            day: field(z.string().regex(/^\d{4}-\d\d-\d\d$/), 'A local day.', 'একটি স্থানীয় দিন।'),
            used: field(
              z.int().min(0).nullable(),
              'Units used on it; null while they are not known.',
              'সেদিন ব্যবহৃত একক; জানা না গেলে null।',
              'requests',
            ),
          }),
        )
        .length(30),
      'Thirty days, the current one first. Former days are up to a minute old.',
      'ত্রিশ দিন, চলতি দিন আগে। আগের দিনগুলো সর্বোচ্চ এক মিনিট পুরোনো।',
    ),
  }),
)
