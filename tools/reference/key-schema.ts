// The body of `GET /key` as a schema, each field with its unit and meaning in both languages.

import * as z from 'zod'
import { component, field } from './texts.ts'

/** An instant in ISO 8601 and UTC. */
export const instant = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const rate = z.int().min(1).nullable()
const bound = z.array(z.string()).nullable()

export const keySchema = component(
  'Key',
  'Limits, restrictions and usage of a key.',
  'একটি কী-র সীমা, বিধিনিষেধ ও ব্যবহার।',
  z.strictObject({
    id: field(
      z.string(),
      'Id of the key, for the operator. It is not secret.',
      'কী-র id, পরিচালকের জন্য। গোপন নয়।',
    ),
    tier: field(z.string(), 'The plan of the key.', 'কী-র প্ল্যান।'),
    limit: field(z.int().min(1), 'The daily quota.', 'দৈনিক কোটা।', 'requests'),
    used: field(
      z.int().min(0).nullable(),
      'Units used today. Null if unknown.',
      'আজ ব্যবহৃত একক; জানা না গেলে null।',
      'requests',
    ),
    remaining: field(
      z.int().min(0).nullable(),
      'Units left today. Null if unknown.',
      'আজ বাকি একক; জানা না গেলে null।',
      'requests',
    ),
    reason: field(
      z.string().nullable(),
      "Why the counts are null: `store_unavailable` if the gateway can't reach its store. Null if they are exact.",
      'গণনা কেন null: গেটওয়ে তার ভান্ডারে পৌঁছাতে না পারলে `store_unavailable`। গণনা সঠিক হলে null।',
    ),
    reset_at: field(instant, 'The next local midnight, in UTC.', 'পরবর্তী স্থানীয় মধ্যরাত, UTC-তে।', 'iso8601'),
    rates: field(
      z
        .strictObject({
          per_second: field(rate, 'Requests per second. Null: no limit.', 'সেকেন্ডে অনুরোধ; সীমা না থাকলে null।'),
          burst: field(rate, 'Largest burst of requests. Null: no limit.', 'একসঙ্গে অনুরোধ; সীমা না থাকলে null।'),
          per_minute: field(rate, 'Requests per minute. Null: no limit.', 'মিনিটে অনুরোধ; সীমা না থাকলে null।'),
        })
        .nullable(),
      'Limits per second and minute. Null: none.',
      'সেকেন্ড ও মিনিটের সীমা; না থাকলে null।',
    ),
    restrictions: field(
      z
        .strictObject({
          origins: field(
            bound,
            'Allowed origins of web pages. Null: any.',
            'ওয়েব পাতার উৎস; যেকোনোটি হলে null।',
          ),
          addresses: field(
            bound,
            'Allowed addresses and ranges. Null: any.',
            'ঠিকানা ও পরিসর; যেকোনোটি হলে null।',
          ),
          endpoints: field(bound, 'Allowed endpoints. Null: all.', 'এন্ডপয়েন্টের নাম; সব হলে null।'),
        })
        .nullable(),
      'Restrictions of the key. Null: none.',
      'কী-র বিধিনিষেধ; না থাকলে null।',
    ),
    created_at: field(instant, 'When the key was created, in UTC.', 'কী কবে তৈরি, UTC-তে।', 'iso8601'),
    expires_at: field(
      instant.nullable(),
      'When the key expires or its replacement takes over, in UTC. Null: never.',
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
              'Units used on this day. Null if unknown.',
              'সেদিন ব্যবহৃত একক; জানা না গেলে null।',
              'requests',
            ),
          }),
        )
        .length(30),
      'The last thirty days, today first. Earlier days may be a minute behind.',
      'ত্রিশ দিন, চলতি দিন আগে। আগের দিনগুলো সর্বোচ্চ এক মিনিট পুরোনো।',
    ),
  }),
)
