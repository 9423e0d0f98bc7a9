// The speed of the gateway against its bars: `npm run bench`. Every claim about speed in this project comes from it.

import { writeSection } from './report.ts'
import { runBench } from './run-rows.ts'
import { hits } from './speed/hits.ts'
import { http2 } from './speed/http2.ts'
import { idleConnections } from './speed/idle.ts'
import { mix } from './speed/mix.ts'
import { newConnections } from './speed/new-connections.ts'
import { refresh } from './speed/refresh.ts'
import { resident } from './speed/resident.ts'
import { start } from './speed/start.ts'
import { tails } from './speed/tails.ts'
import { tls } from './speed/tls.ts'
import { two } from './speed/two.ts'

await runBench({
  name: 'bench',
  summary: 'Measures the speed of the gateway against its bars in some 40 minutes',
  page: 'docs/performance.md',
  needs:
    'Needs Linux; what is compared over redis-server, nginx with Lua, wrk and h2load needs these on the path.',
  rows: [mix, tails, hits, newConnections, tls, http2, idleConnections, two, resident, refresh, start],
  settings: {
    rounds: { help: 'rounds of every row in turn, each a fresh process', usual: 5 },
    seconds: { help: 'of load on a row in each round', usual: 3 },
    pairs: { help: 'runs of each side in an open loop', usual: 15 },
    open: { help: 'seconds of the open loop under the profiler', usual: 20 },
    minutes: { help: 'of the mix for its memory', usual: 5 },
  },
  write: ran =>
    writeSection(
      'bench',
      {
        title: 'Speed beside others',
        intro:
          'The speed of the gateway on realistic traffic, compared with other servers and with its bars.',
        howToRead: `The headline is the row \`mix\`: many places and keys by Zipf, all endpoints, both languages, gzip and br, requests with
an ETag, the access log on, Redis. Rows with one URL or one key stand beside it, and in \`hits\` with a body of 10 kB.
Your own traffic can be recorded and sent with \`abohawa replay\` ([load testing](load-testing.md)).

The load has no pauses, so answers a second and p99 are those of a server at its limit; the open loop
measures the times at half of it. Figures of a row are comparable with those of other rows of the same run, not with
another machine's or another day's; gaps under 10 % mean nothing. Servers run in turn, so each round gives a pair; a bar is compared
with the median of the pairs' ratios, so that what disturbs the machine for a while counts for both. The microseconds of a hit are listed
in [the path of a hit](decisions/hit-path.md#what-each-trick-buys).`,
        doesNotProve: [
          `Nothing about a network: everything runs on one machine over its loopback. But for \`tls\` and \`http2\` there is no TLS, and but for
  \`new-connections\`, \`tls\` and \`idle\` connections are few and kept. Slow lines cost more.`,
          'Nothing about misses: all weather is cached. The latency of the provider comes on top; capacity is in [capacity](#capacity-of-the-cache).',
          `Nothing about your traffic: the mix is drawn from a seed, not recorded, and repeats after 20,000 requests; 1,000 keys are
  not a million. An open loop at half of a capacity says nothing about the other half.`,
          `Nothing about Redis at its limits: one server without persistence, replicas or neighbours, on the core of the load. Where
  that core was the limit, servers that use Redis less look better than on a larger machine.`,
          `The compositions are what most people would write, not the best that their authors could do; nginx is one worker with
  one script of ours. They compare the same work, not the best of these programs.`,
          'Minutes, not weeks: no fragmentation, no full disks, no log rotation.',
        ],
      },
      ran,
    ),
})
