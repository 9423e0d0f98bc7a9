// The answers of the ops listener, by the names of this page. Types alone, for the type checker: the browser never gets this file.

import type { CellReport, SlicesReport } from 'abohawa/operate/reports/cell-report.ts'
import type { PurgePrice } from 'abohawa/operate/reports/purge-report.ts'
import type { CellStatus, GatewayStatus, SearchReport } from 'abohawa/operate/reports/status-report.ts'

export type {
  CellReport,
  EntryReport as Entry,
  SlicesReport as Slices,
} from 'abohawa/operate/reports/cell-report.ts'
export type { KeyPanelReport as KeyPanel } from 'abohawa/operate/reports/key-panel-report.ts'
export type {
  CellStatus as Cell,
  CellsReport as Cells,
  TrafficHistory as History,
  TrafficPoint as Point,
} from 'abohawa/operate/reports/status-report.ts'

export type Price = PurgePrice
export type CellState = CellStatus['state']
export type Status = GatewayStatus
export type Place = NonNullable<CellReport['places']>[number]
export type Found = SearchReport['places'][number]
/** Instants of the provider's steps that a timeline holds, and how many. */
export type Steps = SlicesReport['hours']
