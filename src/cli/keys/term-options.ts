// The options for restrictions and rates of a key, and both as text for lists.

import type { Command } from 'commander'
import { asUsage } from '../../command-line/usage-error.ts'
import { type GivenTerms, givenTermsIn, type Terms, type TermTexts } from '../../keys/key-terms.ts'

const options = [
  [
    '--origins <list>',
    'accept the key only from web pages of these origins, such as https://app.example.org,https://*.example.org',
  ],
  ['--addresses <list>', 'accept the key only from these addresses and CIDR ranges'],
  ['--endpoints <list>', 'accept the key only for these endpoints, such as weather,forecast'],
  ['--per-second <requests>', 'requests per second (overrides the tier)'],
  ['--burst <requests>', 'requests at the same time (default: --per-second)'],
  ['--per-minute <requests>', 'requests per minute (overrides the tier)'],
] as const

/** @param note an end for the meaning of each */
export const addTermOptions = (command: Command, note = ''): Command =>
  options.reduce((all, [flags, meaning]) => all.option(flags, `${meaning}${note}`), command)

/** What the options say. @throws UsageError */
export const termsOf = (given: TermTexts): GivenTerms => asUsage(() => givenTermsIn(given))

/** A list of a restriction; empty without one. */
export const listText = (list: readonly string[] | null | undefined): string => (list ?? []).join(' ')

/** Custom rates of a key; empty without any. */
export const ratesText = (rates: Terms['rates']): string =>
  [
    ...(rates?.perSecond ? [`${rates.perSecond}/s`] : []),
    ...(rates?.burst ? [`${rates.burst} at once`] : []),
    ...(rates?.perMinute ? [`${rates.perMinute}/min`] : []),
  ].join(', ')

/** All terms of a key, or `none`. */
export const termsText = ({ restrictions, rates }: Terms): string =>
  [
    ...Object.entries(restrictions ?? {}).flatMap(([kind, list]) =>
      list ? [`${kind} ${listText(list)}`] : [],
    ),
    ...(rates ? [ratesText(rates)] : []),
  ].join('; ') || 'none'
