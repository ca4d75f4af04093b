"""What the two documents ask for, each in a line of our own."""

LINES = """
R1 Throughput is a metric of its own: requests, samples and tokens per second, and goodput
R2 Latency by phase with percentiles, and how each is defined
R3 Utilization in layers: allocated, GPU utilization, SM, tensor and DRAM, model (MFU, MBU)
R4 Metrics decide how many GPUs: the smallest fleet that meets the targets, replayed
R5 Metrics decide how powerful: types, counts and parallelism searched, with a Pareto set
R6 Several workloads with priorities share one fleet
R7 Waste in GPU-hours, dollars and kWh, by cause
R8 A chart of busy and idle GPUs over time, coloured by band
R9 A chart of throughput against demand and capacity
R10 A pasted table of minutes and percent is read: mean, peak, band of each minute
R11 Under-used and overloaded are told apart, with hysteresis and a minimum duration
R12 Precision is the useful share of paid GPU time, by one definition everywhere
R13 Recall is the share of demanded work that was done within its SLO
R14 Precision against recall over the size of the fleet, with the best F-beta
R15 The recommended size with the value of one GPU more and one less
R16 Good is utilization, demand and latency together; a percentage alone is never green
R17 Below 30 %: money wasted per month, and what to do about it
R18 Above 95 %: how much the tail of latency grows for this pool
R19 The zones between have names, exact edges, and edges of one's own
R20 Throughput too low: deficit, growth of the backlog, time to clear it
R21 Latency too high: SLO attainment, burn rate, the phase that binds
R22 Peaks are judged, not averages
R23 Transfers between CPU and GPU are modelled and detected
R24 No fitting to today's load alone: growth, back-tests, regret
R25 High utilization is not performance: MFU, MBU and energy per unit of work
R26 98 % and slow: the three explanations are told apart
R27 More GPUs or better code: actions ranked by what they bring to this fleet
R28 The balance rule as a gate with an exit code
R29 It teaches: why, pitfalls seen here, questions with answers
R30 Hardware and software in one plan
R31 Number and type of GPUs, storage and network in one plan
R32 Neither delay nor extra cost: deadlines and budgets
R33 Feasible with a certificate, or infeasible with the smallest relaxation
R34 What a naive choice would have cost
R35 Clouds, distributed training and cost are reachable from the plan
R36 Speed, cost, energy, carbon and risk are weighed explicitly
R37 A calendar of capacity, not counts alone
R38 The six needs as a vector, supply against demand
R39 GPU and host, rack and site are chosen together
R40 Training and inference share a fleet by time
R41 The CPU is always compared
R42 Every kind of workload: training, tuning, RL, serving, vision, speech, recommenders, classical
R43 Cores, memory, drives, NICs and power supplies, each with a reason
R44 Drivers, CUDA, frameworks and GPUs must go together
R45 Balance is the smallest headroom, and the next bottleneck has a name
R46 The specification that decides for each accelerator
R47 Performance per watt and per dollar of each accelerator
R48 Memory of large training over every way to shard it
R49 Small models go to smaller GPUs, slices or CPUs
R50 The largest context and concurrency of a GPU
R51 Over-specified GPUs of a running fleet are found
R52 Scaling is not linear: curve, knee, efficiency, price of speed
R53 Communication costs are modelled by collective and topology
R54 Parallelism is chosen, with reasons
R55 The network's kind and speed matter
R56 Combinations that software does not support are refused
R57 The last GPU that is worth it
R58 Software limits: stragglers, launches, the data loader
R59 The next dollars on GPUs, NICs, storage or code
R60 Adding GPUs past the knee is blocked unless forced
R61 Bytes, reads and metadata that training demands of storage
R62 How much GPUs wait for data, and the chain of bottlenecks
R63 Storage tiers that would do, with prices
R64 Loader advice: workers, prefetch, pinning, formats, decoding
R65 Checkpoints, model loading, staging, and growth of logs and data
R66 Waiting for data is detected live: disks, NICs, retransmits
R67 Top GPUs behind slow disks and basic switches are rejected
R68 A balanced system at the same budget
R69 The priciest GPU is not always the best
R70 Several mid-range GPUs instead, failures included
R71 Every way to buy: on-demand, reserved, spot, owned, tokens
R72 Flexibility has a value: regret under scenarios of demand
R73 Total cost of ownership by month
R74 Power at every level, circuits, supplies, UPS, caps
R75 Cooling in kW, BTU, tons and air flow, with redundancy
R76 Maintenance: failures, spares, repair times, windows
R77 Energy, carbon, water and joules per token
R78 Each workload on what suits it, in one mixed fleet
R79 Power and cooling are checked before anything is bought
R80 A checklist before installation
R81 Units, weight, depth, cables and ports
R82 Cost, energy and upkeep count by default
R83 Patterns of load: hours, weeks, traces, bursts
R84 Engine, precision and batching are variables of the plan
R85 Quotas, priorities and fairness of teams
R86 Every common monitoring source is read
R87 Twenty named causes or more, each shown by data
R88 Advice on BF16, FP8 and FP4 with speed, memory and risk
R89 MIG, MPS and time-slicing with caveats and packing
R90 Manifests for Kubernetes and its schedulers
R91 Optimize first or buy: the two plans side by side
R92 Growth, lead times and staged purchases
R93 What an update of the engine would change
R94 Observe, calibrate, notice drift, plan again with hysteresis
R95 The path from disk to HBM, stage by stage
R96 Waiting for one another is accounted for
R97 AMD, TPU, Trainium and Gaudi beside NVIDIA
R98 The catalog is versioned and extended; announced hardware is marked
R99 Hardware does not make models more accurate, and choices that touch quality are named
R100 The roofline of each phase
R101 What 10 % more of each resource would bring
R102 Versions are recorded with measurements, and two runs are compared
R103 When a CPU suffices, no GPU is planned
R104 TPU or GPU for very large training, porting included
R105 Cloud instead of owning where flexibility matters
R106 Replicas follow the load, cold starts included
R107 One cluster for many teams: quotas, cohorts, chargeback
R108 Own the base and burst to the cloud
R109 Plan against actual cost by team and model
R110 Energy in the same ledger
R111 Cloud prices with date, source and region
R112 The plan in terms of parallel computing
R113 Lead time, safety stock, reorder point, supplier risk
R114 One page with the five takeaways: match, choose, balance, scale, sustain
"""
SAYS = dict(line.split(" ", 1) for line in LINES.strip().splitlines())
