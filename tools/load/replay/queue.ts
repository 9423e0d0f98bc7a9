// Arrivals that wait for a connection. A stalled target may leave millions waiting, so `shift` does not move them each time.

export class Queue {
  #arrivals: number[] = []
  #front = 0

  get first(): number | undefined {
    return this.#arrivals[this.#front]
  }
  push(arrival: number): void {
    this.#arrivals.push(arrival)
  }
  shift(): void {
    this.#front += 1
    if (this.#front < 10_000 || this.#front * 2 < this.#arrivals.length) return
    this.#arrivals = this.#arrivals.slice(this.#front)
    this.#front = 0
  }
  clear(): void {
    this.#front = this.#arrivals.length
  }
}
