// One core for the server, another for the load, and what a process cost: Linux' taskset and /proc.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export const hasCommand = (name: string): boolean => spawnSync('which', [name]).status === 0

const canPin = hasCommand('taskset')
if (!canPin) process.stderr.write('taskset is not installed (util-linux), so nothing is pinned to a core\n')

export const pinned = (core: 0 | 1, command: readonly string[]): readonly string[] =>
  canPin ? ['taskset', '-c', String(core), ...command] : command

const ticksPerSecond = 100

/** Processor time of a process so far, in µs. */
export const processorUs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6
}

export const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024
