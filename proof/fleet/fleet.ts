// The gateways of one history, their keys and the faults around them: takes one step of a schedule after the other. What a
// single gateway is, is in member.ts; how requests are sent, in sender.ts. Longer than 300 lines, because every kind of step is
// taken here.

import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar } from '../../src/common/calendar.ts'
import { readConfig } from '../../src/config/load.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { openStore } from '../../src/stores/open-store.ts'
import type { Happened, Place, Recorder } from '../history.ts'
import type { LinkFault, PlannedRequest, Schedule, Settings, Step } from '../steps.ts'
import type { FleetClock } from './clock.ts'
import { openFiles } from './files.ts'
import type { Lane } from './lane.ts'
import { type Member, settingsAt, startMember } from './member.ts'
import { createSender, type Target } from './sender.ts'
import type { Site } from './site.ts'

export type Fleet = {
  readonly size: number
  /** Of the catalogue at the begin. */
  readonly places: readonly Place[]
  /** What gateways in this process have logged. */
  readonly log: readonly string[]
  take(step: Step): Promise<void>
  send(requests: readonly PlannedRequest[], options?: { inTurn?: boolean }): Promise<void>
  /** Ends what still goes on, and starts the gateways that are away. */
  endFaults(): Promise<void>
  /** Whether every gateway counts in the store and none has the provider for failing. */
  isCalm(): Promise<boolean>
  /** Resolves when every separate process has had a turn; undefined where none is to have one. */
  ping(): Promise<unknown> | undefined
  recordReadiness(): Promise<void>
  /** The names of all keys. */
  keys(): string[]
  close(): Promise<void>
}

type Parts = {
  readonly lane: Lane
  readonly schedule: Schedule
  readonly clock: FleetClock
  readonly recorder: Recorder
}

const subscriber = 'Proof'
const suspendedParts = 20
const dayMs = 86_400_000
// Of Dhaka, all year.
const zoneMs = 21_600_000
const unknownKey = 'svc_live_0000000000000000000000000000000000000000'

export const createFleet = async ({ lane, schedule, clock, recorder }: Parts): Promise<Fleet> => {
  const { provider, fallback } = lane
  const redis = await lane.redis(schedule.store)
  const { server } = redis
  await redis.clear()
  lane.disk?.free()
  for (const [name, each] of Object.entries({ primary: provider, 'fallback-1': fallback })) {
    const upstream = (schedule.hasFallback || each === fallback) && { upstream: name }
    await each.begin(
      clock.now,
      call => recorder.add({ kind: 'provider', ...upstream, ...call }),
      initialisedAt => recorder.add({ kind: 'run', initialisedAt }),
    )
  }
  const isEmbedded = schedule.store === 'embedded'
  let settings: Settings = schedule.settings
  const log: string[] = []
  const folder = lane.newFolder()
  const files = openFiles(folder, schedule.protocol !== 'http')
  const site: Omit<Site, 'logged'> = {
    clock,
    protocol: schedule.protocol,
    store: isEmbedded ? { path: lane.newStorePath() } : redis,
    providerUrl: provider.url,
    fallbackUrl: schedule.hasFallback ? fallback.url : undefined,
    processes: schedule.hasProcesses ? { folder, sabotage: lane.sabotage } : undefined,
    constants: schedule.constants ?? {},
    settings: () => ({ ...files.settings, ...settings }),
  }
  const members: (Member | undefined)[] = schedule.skews.map(() => undefined)
  const runs = schedule.skews.map(() => -1)
  /** Where a start failed, and its skew: it is tried again. */
  const due = new Map<number, number>()
  const faults = new Map<string, Step>()

  const linkFaultOf = (gateway: number): LinkFault | undefined =>
    [...faults.values()].flatMap(step =>
      step.do === 'link' && step.gateways.includes(gateway) ? [step.fault] : [],
    )[0]
  const applyLinks = (): void => {
    for (const [gateway, member] of members.entries()) member?.link?.set(linkFaultOf(gateway))
  }

  const start = async (gateway: number, skewMs: number): Promise<void> => {
    if (members[gateway]) return
    const run = (runs[gateway] ?? -1) + 1
    const known = { kind: 'gateway', gateway, run, skewMs } as const
    try {
      const logged = (line: string): void =>
        void log.push(`${new Date(clock.now()).toISOString()} gateway ${gateway}.${run}: ${line}`)
      members[gateway] = await startMember({ ...site, logged }, skewMs, linkFaultOf(gateway))
      runs[gateway] = run
      due.delete(gateway)
      recorder.add({ ...known, what: 'started' })
    } catch (error) {
      due.set(gateway, skewMs)
      if (faults.size === 0) throw error
      recorder.add({ ...known, what: 'not started' })
    }
  }
  const leave = (gateway: number): Member | undefined => {
    const member = members[gateway]
    members[gateway] = undefined
    return member
  }
  const record = (gateway: number, { skewMs }: Member, what: 'stopping' | 'stopped' | 'killed'): void =>
    recorder.add({ kind: 'gateway', gateway, run: runs[gateway] ?? 0, skewMs, what })

  const adminConfig = readConfig({ files: [], env: settingsAt(site, undefined) }).config
  const store = await openStore(adminConfig, clock, { redisAway: () => {}, redisBack: () => {} })
  const administration = createAdministration({
    store,
    tiers: adminConfig.quota.tiers,
    calendar: createCalendar(adminConfig.quota.timeZone),
    clock,
  })
  const keys = new Map<string, { id: string; key: string; former?: string }>()
  /** Where it failed half way, nothing is promised of the key any more. */
  const changeKey = async (
    key: string,
    change: () => Promise<Omit<Happened & { kind: 'key' }, 'kind' | 'key'>>,
  ) => {
    try {
      recorder.add({ kind: 'key', key, ...(await change()) })
    } catch {
      recorder.add({ kind: 'key', key, what: 'unsure' })
    }
  }
  const issue = (name: string, tier: string, expiresAfterMs?: number): Promise<void> =>
    changeKey(name, async () => {
      const until = expiresAfterMs === undefined ? undefined : clock.now() + expiresAfterMs
      const endpoints = schedule.bound?.[name]
      const { id, key } = await administration.createKey(subscriber, tier, {
        ...(until !== undefined && { expires: new Date(until).toISOString() }),
        ...(endpoints && { restrictions: { endpoints: [...endpoints] } }),
      })
      keys.set(name, { id, key })
      return { what: 'issued', id, tier, ...(until !== undefined && { until }) }
    })
  const changeIssued = async (step: Step & { do: 'rotate' | 'revoke' | 'tier' }): Promise<void> => {
    const known = keys.get(step.key)
    if (!known) return
    const { id, key: former } = known
    await changeKey(step.key, async () => {
      if (step.do === 'revoke') {
        await administration.revokeKey(id)
        return { what: 'revoked' }
      }
      if (step.do === 'tier') {
        await administration.setKey(id, { tier: step.tier })
        return { what: 'tier', tier: step.tier }
      }
      const { key, formerKeyUntil } = await administration.rotateKey(id, step.overlapMs)
      keys.set(step.key, { id, key, former })
      // Without an overlap no clock matters.
      const isAtOnce = step.overlapMs === 0
      return { what: 'rotated', until: isAtOnce ? 0 : Date.parse(formerKeyUntil) }
    })
  }

  const renewed = (what: 'certificate' | 'name', value: string): void =>
    recorder.add({ kind: 'renewed', what, value })
  const certificate = files.renew()
  if (schedule.protocol !== 'http') renewed('certificate', certificate)

  for (const [name, tier] of Object.entries(schedule.keys)) await issue(name, tier)
  const starts = await Promise.allSettled(schedule.skews.map((skewMs, gateway) => start(gateway, skewMs)))
  const failed = starts.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') {
    // Nobody has this fleet to close it.
    await Promise.all([...members.map(member => member?.kill()), store.close()])
    throw failed.reason
  }

  const targetOf = (gateway: number): Target | undefined => {
    for (let i = 0; i < members.length; i++) {
      const at = (gateway + i) % members.length
      const member = members[at]
      if (member) return { gateway: at, run: runs[at] ?? 0, apiUrl: member.apiUrl }
    }
    return undefined
  }
  const sender = createSender({
    protocol: schedule.protocol,
    clock,
    recorder,
    targetOf,
    keyOf: name => keys.get(name)?.key ?? unknownKey,
    formerKeyOf: name => keys.get(name)?.former,
  })

  const beginFault = async (step: Step): Promise<void> => {
    if (step.do === 'link') applyLinks()
    if (step.do === 'provider-link') provider.link.set(step.fault)
    if (step.do === 'store') await (isEmbedded ? lane.disk?.fill() : server?.begin(step.fault))
    if (step.do === 'provider') await provider.set(step.fault)
  }
  const endFault = async (step: Step | undefined): Promise<void> => {
    if (step?.do === 'link') applyLinks()
    if (step?.do === 'provider-link') provider.link.set(undefined)
    if (step?.do === 'store') await (isEmbedded ? lane.disk?.free() : server?.end(step.fault))
    if (step?.do === 'provider') {
      await provider.set({ mode: 'none' })
      await provider.set({ latencyMs: 0 })
    }
  }
  const endAll = async (): Promise<void> => {
    for (const [id, step] of [...faults]) {
      faults.delete(id)
      await endFault(step)
    }
  }
  const isFrozen = (): boolean =>
    [...faults.values()].some(each => each.do === 'store' && each.fault === 'frozen')

  const carryOut = async (step: Step): Promise<void> => {
    switch (step.do) {
      case 'load':
        return sender.send(step.requests, { inTurn: step.inTurn })
      case 'move':
        await Promise.all([clock.advance(step.ms), step.realMs && pause(step.realMs)])
        return
      case 'to-midnight': {
        const next = Math.ceil((clock.now() + zoneMs + step.beforeMs + 1) / dayMs) * dayMs - zoneMs
        return clock.advance(next - step.beforeMs - clock.now())
      }
      case 'link':
      case 'provider-link':
      case 'store':
      case 'provider':
        faults.set(step.id, step)
        return beginFault(step)
      case 'heal': {
        const fault = faults.get(step.id)
        faults.delete(step.id)
        return endFault(fault)
      }
      case 'empty':
        return isFrozen() ? undefined : redis.empty()
      case 'restart-store':
        return isFrozen() ? undefined : server?.restart()
      case 'fail-over':
        await Promise.all([redis.failOver?.(step.kill), sender.send(step.under)])
        return
      case 'catalogue':
        files.rename(step.name)
        for (const member of members) await member?.readCatalogue()
        return renewed('name', step.name)
      case 'certificate': {
        const next = files.renew()
        for (const member of members) await member?.configure()
        return renewed('certificate', next)
      }
      case 'drop-messages':
        return isFrozen() ? undefined : redis.dropMessages()
      case 'stop': {
        const member = leave(step.gateway)
        if (!member) return
        record(step.gateway, member, 'stopping')
        await member.stop()
        record(step.gateway, member, 'stopped')
        return
      }
      case 'kill': {
        const kill = async (): Promise<void> => {
          const member = leave(step.gateway)
          if (member) record(step.gateway, member, 'killed')
          await member?.kill()
        }
        const { under } = step
        if (!under) return kill()
        return sender.send(under.requests, { meanwhile: () => pause(under.afterMs).then(kill) })
      }
      case 'suspend': {
        const member = members[step.gateway]
        const standStill = async (): Promise<void> => {
          // In parts, because others wait by this clock for what it holds, and Redis by its own.
          const [ms, moveMs] = [step.ms / suspendedParts, Math.round(step.moveMs / suspendedParts)]
          for (let i = 0; i < suspendedParts; i++) await Promise.all([pause(ms), clock.advance(moveMs)])
        }
        const suspend = async (): Promise<void> => {
          await pause(step.afterMs ?? 0)
          member?.suspend?.()
          await sender.send(step.meanwhile ?? [], { meanwhile: standStill })
          member?.resume?.()
        }
        return sender.send(step.under, { meanwhile: suspend })
      }
      case 'start':
        return start(step.gateway, step.skewMs)
      case 'issue':
        return issue(step.key, step.tier, step.expiresAfterMs)
      case 'rotate':
      case 'revoke':
      case 'tier':
        return changeIssued(step)
      case 'configure':
        return configure(step.settings)
      case 'purge':
        return members[step.gateway]?.purge(step.kind === 'hard').then(kind => {
          if (kind) recorder.add({ kind: 'purged', gateway: step.gateway, hard: kind === 'hard' })
        })
      case 'run':
        return provider.setRun(step.fault)
    }
  }
  const configure = async (changed: Settings): Promise<void> => {
    const before = settings
    settings = { ...settings, ...changed }
    let isRefused = false
    for (const [gateway, member] of members.entries()) {
      if (!member) continue
      const outcome = await member.configure()
      isRefused ||= outcome === 'refused'
      recorder.add({ kind: 'configured', gateway, settings: changed, outcome })
    }
    // An operator mends the file; a start with it would fail.
    if (isRefused) settings = before
  }

  const readiness = () =>
    Promise.all(members.map(async (member, gateway) => ({ gateway, ...(await member?.ready()) })))

  return {
    size: members.length,
    places: files.places,
    log,
    take: async step => {
      recorder.add({ kind: 'step', step })
      await carryOut(step)
      if (step.do === 'heal') for (const [gateway, skewMs] of [...due]) await start(gateway, skewMs)
    },
    send: (requests, options = {}) => sender.send(requests, options),
    endFaults: async () => {
      await endAll()
      provider.setRun('none')
      for (const gateway of members.keys()) if (!members[gateway]) await start(gateway, due.get(gateway) ?? 0)
    },
    isCalm: async () =>
      (await readiness()).every(
        ({ status, body = '' }) =>
          status === 200 && body.includes('counted in the store') && body.includes('circuit closed'),
      ),
    ping: () => {
      const pings = members.flatMap(member => member?.ping?.() ?? [])
      return pings.length > 0 ? Promise.all(pings) : undefined
    },
    recordReadiness: async () => {
      for (const { gateway, status = 0, body = '' } of await readiness())
        recorder.add({ kind: 'ready', gateway, status, body })
    },
    keys: () => [...keys.keys()],
    close: async () => {
      await endAll()
      await Promise.all(members.map(member => member?.kill()))
      await store.close()
    },
  }
}
