// As much of uPlot as the charts use.

declare class uPlot {
  static paths: { bars(options: Record<string, unknown>): unknown };
  constructor(options: Record<string, unknown>, data: unknown[], place: HTMLElement);
  readonly width: number;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}

export default uPlot;
