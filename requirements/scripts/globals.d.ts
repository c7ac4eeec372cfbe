// What vendored files add to pages, as far as the scripts use it.

declare const htmx: {
  ajax(method: string, path: string, options: string | Element | Record<string, unknown>): Promise<void>;
  process(element: Element): void;
  trigger(element: Element | string, name: string, detail?: unknown): void;
};

declare module "*.mjs";
