// `abohawa keys create`: one key, many alike, or those of a CSV file. Each key is shown before it is created, so that an
// interruption loses none.

import { type Command, Option } from 'commander'
import { interruption } from '../../command-line/interruption.ts'
import { checkTier } from '../../command-line/key-tier.ts'
import { numberIn } from '../../command-line/quantities.ts'
import { type AddCommand, counted, csvOption, type Terminal } from '../../command-line/terminal.ts'
import { asUsage, UsageError } from '../../command-line/usage-error.ts'
import { checkOutputs, outputsOf } from '../../command-line/writable.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { printable, quoted } from '../../common/outside-text.ts'
import type { Administration, CreatedKey, KeyRequest } from '../../keys/administration.ts'
import { limitIn } from '../../keys/key-request.ts'
import type { TermTexts } from '../../keys/key-terms.ts'
import { testTier, tiersOf } from '../../keys/test-keys.ts'
import { addCreateStoreOption, administer } from '../administer.ts'
import { createKeyDifferences } from './key-differences.ts'
import { type ReadRequest, readRequests, wrongLines } from './key-file.ts'
import { createUnsure, openOutput } from './key-output.ts'
import { type CreatedForm, createdCsv, createdJson, createdText, minuteText } from './key-table.ts'
import { addTermOptions, termsOf, termsText } from './term-options.ts'

type Options = TermTexts & {
  subscriber?: string
  tier?: string
  test?: boolean
  externalId?: string
  limit?: string
  expires?: string
  count?: number
  from?: string
  out?: string
  csv?: boolean
  apply?: boolean
  createStore?: boolean
}

const maxKeys = 10_000

export const addCreateCommand = (keys: Command, add: AddCommand): Command =>
  add<Options>(keys, 'create', {
    summary: 'create one or many keys; each is shown only once',
    example: `keys create --subscriber "Dhaka Tribune" --tier starter
  npm run -s abohawa -- keys create --subscriber Schools --tier free --count 30 --json
  npm run -s abohawa -- keys create --from keys.csv --csv --out issued.csv`,
    setUp: command =>
      addCreateStoreOption(
        addTermOptions(
          command
            .option('--subscriber <name>', 'subscriber of the key; a new name adds a subscriber')
            .option(
              '--tier <name>',
              'tier with the daily quota: free, starter, business, enterprise, or your own',
            )
            .addOption(
              new Option('--test', "create a test key, for the subscriber's test suite").conflicts('tier'),
            )
            .option('--limit <requests>', 'requests per day (overrides the tier)')
            .option('--expires <when>', 'day (until its end), timestamp, or duration such as 90d'),
        )
          .option('--external-id <id>', 'id of the key in another program, unique in the store')
          .option(
            '--count <number>',
            `number of keys to create, up to ${counted(maxKeys)}`,
            numberIn(1, maxKeys),
          )
          .addOption(
            new Option(
              '--from <csv>',
              'create the keys in a CSV file with the columns subscriber, tier, external_id, and optionally limit, expires, origins, addresses, endpoints, per_second, burst, per_minute; run again to create missing keys',
            ).conflicts([
              ...['subscriber', 'tier', 'test', 'externalId', 'limit', 'expires', 'count'],
              ...['origins', 'addresses', 'endpoints', 'perSecond', 'burst', 'perMinute'],
            ]),
          )
          .option('--apply', 'with --from: update tier, limits and restrictions of existing keys')
          .addOption(csvOption('print CSV'))
          .option('--out <path>', 'write to a new file (mode 0600)'),
      ),
    run: async (terminal, options) => {
      const { count, from, out, csv, createStore } = options
      const isMany = count !== undefined || from !== undefined || csv || out !== undefined
      await checkOutputs(terminal, outputsOf('--out', out), { inputs: [from], force: undefined })
      const requests = await requestsOf(options)
      for (const { tier } of from === undefined ? requests.slice(0, 1) : []) checkTier(terminal, tier)
      return administer(
        terminal,
        (administration, store) =>
          isMany
            ? createMany(terminal, administration, requests, options)
            : createOne(terminal, administration, store, requests[0] as KeyRequest),
        createStore ?? false,
      )
    },
  })

const requestsOf = async (options: Options): Promise<ReadRequest[]> => {
  const { from, count = 1, subscriber, externalId, expires } = options
  const tier = options.test ? testTier : options.tier
  if (from !== undefined) return readRequests(from)
  if (options.apply) throw new UsageError('--apply requires --from')
  if (subscriber === undefined || tier === undefined)
    throw new UsageError(
      `${subscriber === undefined ? '--subscriber' : '--tier or --test'} is required, unless --from names a file`,
    )
  if (count > 1 && externalId !== undefined)
    throw new UsageError("--external-id can't be combined with --count; --from takes an id for each key")
  const limit = options.limit === undefined ? undefined : asUsage(() => limitIn(options.limit as string))
  const terms = termsOf(options)
  return Array.from({ length: count }, () => ({ subscriber, tier, externalId, expires, limit, ...terms }))
}

const createOne = async (
  terminal: Terminal,
  administration: Administration,
  store: string,
  request: KeyRequest,
): Promise<void> => {
  const meant = await administration.nearlyNamed(request.subscriber)
  await refuseFaults(administration, [request])
  if (meant !== undefined)
    terminal.remark(
      `${quoted(request.subscriber.trim(), 100)} is a new subscriber, and nearly ${quoted(meant, 100)}. If that was meant, revoke this key and create another.`,
    )
  const unsure = createUnsure()
  const show = async (planned: readonly CreatedKey[]): Promise<void> => {
    for (const { existed, ...key } of planned)
      await terminal
        // A key without an external id is always new.
        .showOnce({ ...key, ...(key.externalId !== null && { existed }), store }, textOfOne(key))
        .catch(cause => {
          throw new InputError(`${messageOf(cause)}; no key was created`, { cause })
        })
    unsure.add(planned)
  }
  try {
    for await (const created of administration.createKeys([request], show)) unsure.remove(created)
  } catch (cause) {
    throw new InputError(`${messageOf(cause)}${unsure.text()}`, { cause })
  }
  unsure.refuse()
}

const textOfOne = ({
  id,
  key,
  subscriber,
  tier,
  limit,
  externalId,
  expiresAt,
  ...terms
}: Omit<CreatedKey, 'existed'>): string => {
  if (key === null)
    return `${id} for ${printable(subscriber)} has the external id ${printable(externalId ?? '')} already. Its key can't be shown again; \`abohawa keys rotate ${id}\` replaces it.`
  const until = expiresAt === null ? '' : ` It expires at ${minuteText(expiresAt)} UTC.`
  const all = termsText(terms)
  const bound = all === 'none' ? '' : ` Its terms: ${printable(all)}.`
  return `${key}

${id} for ${printable(subscriber)}, tier ${tier}: ${counted(limit ?? 0)} requests a day.${until}${bound}
Keep the key now: it can't be shown again.`
}

/** @throws InputError when one of the requests can't be created */
const refuseFaults = async (
  administration: Administration,
  requests: readonly ReadRequest[],
  { from: file, apply }: Pick<Options, 'from' | 'apply'> = {},
): Promise<void> => {
  const faults = await administration.faultsOf(requests, apply)
  const [first] = faults
  if (!first) return
  if (file === undefined) throw new InputError(first.message)
  throw wrongLines(
    file,
    faults.map(({ index, message }) => `line ${requests[index]?.line}: ${message}`),
  )
}

/** Refuses unknown tiers of new or changed keys; existing keys that stay need no valid tier. @throws InputError */
const refuseTiers = (terminal: Terminal, requests: readonly ReadRequest[], file: string): void => {
  const tiers = Object.keys(tiersOf(terminal.config().quota))
  const wrong = requests
    .filter(({ tier }) => !tiers.includes(tier))
    .map(({ line, tier }) => `line ${line}: tier must be one of ${tiers.join(', ')}, got ${quoted(tier)}`)
  if (wrong.length > 0) throw wrongLines(file, wrong)
}

const createMany = async (
  terminal: Terminal,
  administration: Administration,
  requests: readonly ReadRequest[],
  options: Options,
): Promise<void> => {
  const { from, out, csv, externalId, apply = false } = options
  if (apply) refuseTiers(terminal, requests, from ?? '')
  // Keys of --count are all alike.
  await refuseFaults(administration, from === undefined ? requests.slice(0, 1) : requests, options)
  const form: CreatedForm = terminal.json ? createdJson : csv ? createdCsv : createdText
  await using output = await openOutput(terminal, out)
  let isStopped = false
  void interruption().then(() => (isStopped = true))
  const differences = createKeyDifferences(administration, from === undefined ? [] : requests, apply)
  const totals = { created: 0, existed: 0 }
  const done = () => totals.created + totals.existed
  const all = counted(requests.length)
  let shown = 0
  const unsure = createUnsure()
  const show = async (planned: readonly CreatedKey[]): Promise<void> => {
    const part: CreatedKey[] = []
    for (const key of planned) part.push(await differences.settle(key))
    const lines = part.map((key, i) => `${shown + i > 0 ? form.between : ''}${form.line(key)}`)
    // Standard output may show a part of a failed write; a file is truncated.
    if (out === undefined) unsure.add(part)
    await output.write(lines.join(''))
    shown += part.length
    unsure.add(part)
  }
  try {
    await output.write(form.head)
    for await (const created of administration.createKeys(requests, show)) {
      unsure.remove(created)
      for (const { existed } of created) totals[existed ? 'existed' : 'created'] += 1
      terminal.progress(`${counted(done())} of ${all}`)
      if (isStopped && done() < requests.length) throw new InputError('the command was interrupted')
    }
    unsure.refuse()
  } catch (cause) {
    terminal.progress('')
    // Standard output may be what failed.
    await output.end(form.tail, shown > 0).catch(() => {})
    const isAlike = from === undefined && externalId === undefined
    const again = isAlike ? `--count ${requests.length - done()}` : 'the same command with another --out'
    const sentence = `${messageOf(cause)}; ${totalsText(totals)} of ${all}: ${again} creates the rest`
    const changed = differences.text()
    throw new InputError(`${sentence}${unsure.text()}${changed && `.${changed}`}`, { cause })
  }
  terminal.progress('')
  await output.end(form.tail, true)
  const note = totals.created > 0 ? ` Keep ${out ?? 'the keys'} now: the keys can't be shown again.` : ''
  const lost =
    totals.existed > 0
      ? ' Keys that existed are not shown again; `abohawa keys rotate ID` replaces one that was lost.'
      : ''
  terminal.remark(`${totalsText(totals)}.${note}${lost}${differences.text()}`)
}

const totalsText = ({ created, existed }: { created: number; existed: number }): string =>
  `${counted(created)} created, ${counted(existed)} existed`
