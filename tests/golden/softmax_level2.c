// fused4_64_96: in0 out0
#include <math.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

static inline float across_max_f32x8_8(f32x8 x) {
  float y0 = ((x[0]>x[4])?x[0]:x[4]);
  float y1 = ((x[1]>x[5])?x[1]:x[5]);
  float y2 = ((x[2]>x[6])?x[2]:x[6]);
  float y3 = ((x[3]>x[7])?x[3]:x[7]);
  float y4 = ((y0>y2)?y0:y2);
  float y5 = ((y1>y3)?y1:y3);
  float y6 = ((y4>y5)?y4:y5);
  return y6;
}

static inline float across_add_f32x8_8(f32x8 x) {
  float y0 = (x[0]+x[4]);
  float y1 = (x[1]+x[5]);
  float y2 = (x[2]+x[6]);
  float y3 = (x[3]+x[7]);
  float y4 = (y0+y2);
  float y5 = (y1+y3);
  float y6 = (y4+y5);
  return y6;
}

static void r_64_0(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx2 = first; ridx2 < last; ridx2++) {
    for (int ridx3 = 0; ridx3 < 8; ridx3++) {
      long alu1 = ((long)ridx3);
      f32x8 acc0;
      acc0 = (-INFINITY-(f32x8){});
      long alu2 = (((((long)ridx2)*8L)+alu1)*96L);
      f32x8 acc1;
      acc1 = (-INFINITY-(f32x8){});
      f32x8 acc2;
      acc2 = (-INFINITY-(f32x8){});
      f32x8 acc3;
      acc3 = (-INFINITY-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx4 = 0; ridx4 < 3; ridx4++) {
        f32x8 val3 = acc0;
        long alu4 = (((long)ridx4)*32L);
        f32x8 val5 = *(f32x8u*)(data0+(alu2+alu4));
        acc0 = select_f32x8((val3>val5), val3, val5);
        f32x8 val6 = acc1;
        f32x8 val7 = *(f32x8u*)(data0+(alu2+(alu4+8L)));
        acc1 = select_f32x8((val6>val7), val6, val7);
        f32x8 val8 = acc2;
        f32x8 val9 = *(f32x8u*)(data0+(alu2+(alu4+16L)));
        acc2 = select_f32x8((val8>val9), val8, val9);
        f32x8 val10 = acc3;
        f32x8 val11 = *(f32x8u*)(data0+(alu2+(alu4+24L)));
        acc3 = select_f32x8((val10>val11), val10, val11);
      }
      f32x8 val12 = acc0;
      f32x8 val13 = acc1;
      f32x8 alu14 = select_f32x8((val12>val13), val12, val13);
      f32x8 val15 = acc2;
      f32x8 val16 = acc3;
      f32x8 alu17 = select_f32x8((val15>val16), val15, val16);
      f32x8 alu18 = select_f32x8((alu14>alu17), alu14, alu17);
      float alu19 = across_max_f32x8_8(alu18);
      data1[alu1] = alu19;
    }
  }
}

static void e_64_96_1(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx2 = first; ridx2 < last; ridx2++) {
    for (int ridx3 = 0; ridx3 < 8; ridx3++) {
      long alu1 = ((long)ridx3);
      long alu2 = (alu1*96L);
      long alu3 = (((((long)ridx2)*8L)+alu1)*96L);
      float val4 = data1[alu1];
      float alu5 = (val4*-1.0f);
      for (int ridx6 = 0; ridx6 < 3; ridx6++) {
        long alu6 = (((long)ridx6)*32L);
        long alu7 = (alu6+8L);
        long alu8 = (alu6+16L);
        long alu9 = (alu6+24L);
        f32x8 val10 = *(f32x8u*)(data0+(alu3+alu6));
        f32x8 val11 = *(f32x8u*)(data0+(alu3+alu7));
        f32x8 val12 = *(f32x8u*)(data0+(alu3+alu8));
        f32x8 val13 = *(f32x8u*)(data0+(alu3+alu9));
        f32x8 alu14 = ((val10+alu5)*1.4426950408889634f);
        f32x8 alu15 = ((val11+alu5)*1.4426950408889634f);
        f32x8 alu16 = ((val12+alu5)*1.4426950408889634f);
        f32x8 alu17 = ((val13+alu5)*1.4426950408889634f);
        i32x8 alu18 = (alu14<-150.0f);
        i32x8 alu19 = (alu15<-150.0f);
        i32x8 alu20 = (alu16<-150.0f);
        i32x8 alu21 = (alu17<-150.0f);
        f32x8 alu22 = select_f32x8(alu18, (0.0f-(f32x8){}), alu14);
        f32x8 alu23 = select_f32x8(alu19, (0.0f-(f32x8){}), alu15);
        f32x8 alu24 = select_f32x8(alu20, (0.0f-(f32x8){}), alu16);
        f32x8 alu25 = select_f32x8(alu21, (0.0f-(f32x8){}), alu17);
        f32x8 alu26 = select_f32x8((129.0f<alu22), (129.0f-(f32x8){}), alu22);
        f32x8 alu27 = select_f32x8((129.0f<alu23), (129.0f-(f32x8){}), alu23);
        f32x8 alu28 = select_f32x8((129.0f<alu24), (129.0f-(f32x8){}), alu24);
        f32x8 alu29 = select_f32x8((129.0f<alu25), (129.0f-(f32x8){}), alu25);
        f32x8 alu30 = (alu26+12582912.0f);
        f32x8 alu31 = (alu27+12582912.0f);
        f32x8 alu32 = (alu28+12582912.0f);
        f32x8 alu33 = (alu29+12582912.0f);
        f32x8 alu34 = ((alu30+-12582912.0f)*-1.0f);
        i32x8 alu35 = (((i32x8)alu30)+-1262485504);
        f32x8 alu36 = ((alu31+-12582912.0f)*-1.0f);
        i32x8 alu37 = (((i32x8)alu31)+-1262485504);
        f32x8 alu38 = ((alu32+-12582912.0f)*-1.0f);
        i32x8 alu39 = (((i32x8)alu32)+-1262485504);
        f32x8 alu40 = ((alu33+-12582912.0f)*-1.0f);
        i32x8 alu41 = (((i32x8)alu33)+-1262485504);
        f32x8 alu42 = (alu26+alu34);
        i32x8 alu43 = (alu35>>1);
        f32x8 alu44 = (alu27+alu36);
        i32x8 alu45 = (alu37>>1);
        f32x8 alu46 = (alu28+alu38);
        i32x8 alu47 = (alu39>>1);
        f32x8 alu48 = (alu29+alu40);
        i32x8 alu49 = (alu41>>1);
        f32x8 alu50 = ((alu42*0.00015475194959435612f)+0.0013400273164734244f);
        f32x8 alu51 = ((f32x8)((alu43+127)<<23));
        f32x8 alu52 = ((f32x8)(((alu35+(alu43*-1))+127)<<23));
        f32x8 alu53 = ((alu44*0.00015475194959435612f)+0.0013400273164734244f);
        f32x8 alu54 = ((f32x8)((alu45+127)<<23));
        f32x8 alu55 = ((f32x8)(((alu37+(alu45*-1))+127)<<23));
        f32x8 alu56 = ((alu46*0.00015475194959435612f)+0.0013400273164734244f);
        f32x8 alu57 = ((f32x8)((alu47+127)<<23));
        f32x8 alu58 = ((f32x8)(((alu39+(alu47*-1))+127)<<23));
        f32x8 alu59 = ((alu48*0.00015475194959435612f)+0.0013400273164734244f);
        f32x8 alu60 = ((f32x8)((alu49+127)<<23));
        f32x8 alu61 = ((f32x8)(((alu41+(alu49*-1))+127)<<23));
        f32x8 alu62 = (alu42*((alu42*alu50)+0.009618008509278297f));
        f32x8 alu63 = (alu44*((alu44*alu53)+0.009618008509278297f));
        f32x8 alu64 = (alu46*((alu46*alu56)+0.009618008509278297f));
        f32x8 alu65 = (alu48*((alu48*alu59)+0.009618008509278297f));
        f32x8 alu66 = (alu42*(alu62+0.055503278970718384f));
        f32x8 alu67 = (alu44*(alu63+0.055503278970718384f));
        f32x8 alu68 = (alu46*(alu64+0.055503278970718384f));
        f32x8 alu69 = (alu48*(alu65+0.055503278970718384f));
        f32x8 alu70 = (alu42*(alu66+0.24022650718688965f));
        f32x8 alu71 = (alu44*(alu67+0.24022650718688965f));
        f32x8 alu72 = (alu46*(alu68+0.24022650718688965f));
        f32x8 alu73 = (alu48*(alu69+0.24022650718688965f));
        f32x8 alu74 = (alu42*(alu70+0.6931471824645996f));
        f32x8 alu75 = (alu44*(alu71+0.6931471824645996f));
        f32x8 alu76 = (alu46*(alu72+0.6931471824645996f));
        f32x8 alu77 = (alu48*(alu73+0.6931471824645996f));
        f32x8 alu78 = ((alu74+1.0f)*alu51);
        f32x8 alu79 = ((alu75+1.0f)*alu54);
        f32x8 alu80 = ((alu76+1.0f)*alu57);
        f32x8 alu81 = ((alu77+1.0f)*alu60);
        *(f32x8u*)(data2+(alu2+alu6)) = select_f32x8(alu18, (0.0f-(f32x8){}), (alu78*alu52));
        *(f32x8u*)(data2+(alu2+alu7)) = select_f32x8(alu19, (0.0f-(f32x8){}), (alu79*alu55));
        *(f32x8u*)(data2+(alu2+alu8)) = select_f32x8(alu20, (0.0f-(f32x8){}), (alu80*alu58));
        *(f32x8u*)(data2+(alu2+alu9)) = select_f32x8(alu21, (0.0f-(f32x8){}), (alu81*alu61));
      }
    }
  }
}

static void r_64_2(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx2 = first; ridx2 < last; ridx2++) {
    for (int ridx3 = 0; ridx3 < 8; ridx3++) {
      long alu1 = ((long)ridx3);
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      long alu2 = (alu1*96L);
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx4 = 0; ridx4 < 3; ridx4++) {
        f32x8 val3 = acc0;
        long alu4 = (((long)ridx4)*32L);
        f32x8 val5 = *(f32x8u*)(data0+(alu2+alu4));
        acc0 = (val3+val5);
        f32x8 val6 = acc1;
        f32x8 val7 = *(f32x8u*)(data0+(alu2+(alu4+8L)));
        acc1 = (val6+val7);
        f32x8 val8 = acc2;
        f32x8 val9 = *(f32x8u*)(data0+(alu2+(alu4+16L)));
        acc2 = (val8+val9);
        f32x8 val10 = acc3;
        f32x8 val11 = *(f32x8u*)(data0+(alu2+(alu4+24L)));
        acc3 = (val10+val11);
      }
      f32x8 val12 = acc0;
      f32x8 val13 = acc1;
      f32x8 val14 = acc2;
      f32x8 val15 = acc3;
      f32x8 alu16 = ((val12+val13)+(val14+val15));
      float alu17 = across_add_f32x8_8(alu16);
      data1[alu1] = alu17;
    }
  }
}

static void e_64_96_3(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx2 = first; ridx2 < last; ridx2++) {
    for (int ridx3 = 0; ridx3 < 8; ridx3++) {
      long alu1 = ((long)ridx3);
      long alu2 = (((((long)ridx2)*8L)+alu1)*96L);
      long alu3 = (alu1*96L);
      float val4 = data1[alu1];
      float alu5 = (1.0f/val4);
      for (int ridx6 = 0; ridx6 < 3; ridx6++) {
        long alu6 = (((long)ridx6)*32L);
        f32x8 val7 = *(f32x8u*)(data0+(alu3+alu6));
        *(f32x8u*)(data2+(alu2+alu6)) = (val7*alu5);
        long alu8 = (alu6+8L);
        f32x8 val9 = *(f32x8u*)(data0+(alu3+alu8));
        *(f32x8u*)(data2+(alu2+alu8)) = (val9*alu5);
        long alu10 = (alu6+16L);
        f32x8 val11 = *(f32x8u*)(data0+(alu3+alu10));
        *(f32x8u*)(data2+(alu2+alu10)) = (val11*alu5);
        long alu12 = (alu6+24L);
        f32x8 val13 = *(f32x8u*)(data0+(alu3+alu12));
        *(f32x8u*)(data2+(alu2+alu12)) = (val13*alu5);
      }
    }
  }
}

enum {fused4_64_96_steps = 8};
enum {fused4_64_96_scratch = 3136};
void fused4_64_96(float* restrict data0, float* restrict data1, char* scratch, long first, long last) {
  float* local0 = (float*)(scratch+0);
  float* local1 = (float*)(scratch+64);
  float* local2 = (float*)(scratch+0);
  for (long step = first; step < last; step++) {
    r_64_0(data0, local0, step, step+1);
    e_64_96_1(data0, local0, local1, step, step+1);
    r_64_2(local1, local2, step, step+1);
    e_64_96_3(local1, local2, data1, step, step+1);
  }
}
