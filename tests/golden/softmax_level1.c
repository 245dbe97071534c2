// r_64: in0 tmp0
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

void r_64(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 64; ridx0++) {
    long alu1 = ((long)ridx0);
    f32x8 acc0;
    acc0 = (-INFINITY-(f32x8){});
    long alu2 = (alu1*96L);
    f32x8 acc1;
    acc1 = (-INFINITY-(f32x8){});
    f32x8 acc2;
    acc2 = (-INFINITY-(f32x8){});
    f32x8 acc3;
    acc3 = (-INFINITY-(f32x8){});
    #pragma GCC unroll 4
    for (int ridx2 = 0; ridx2 < 3; ridx2++) {
      f32x8 val3 = acc0;
      long alu4 = (((long)ridx2)*32L);
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

// r_64: in0 tmp0 tmp1
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
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

enum {r_64_steps = 64};
void r_64(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx6 = first; ridx6 < last; ridx6++) {
    long alu1 = ((long)ridx6);
    f32x8 acc0;
    acc0 = (0.0f-(f32x8){});
    float val2 = data1[alu1];
    for (int ridx2 = 0; ridx2 < 12; ridx2++) {
      f32x8 val3 = acc0;
      f32x8 val4 = *(f32x8u*)(data0+((alu1*96L)+(((long)ridx2)*8L)));
      f32x8 alu5 = ((val4+(val2*-1.0f))*1.4426950408889634f);
      i32x8 alu6 = (alu5<-150.0f);
      f32x8 alu7 = select_f32x8(alu6, (0.0f-(f32x8){}), alu5);
      f32x8 alu8 = select_f32x8((129.0f<alu7), (129.0f-(f32x8){}), alu7);
      f32x8 alu9 = (alu8+12582912.0f);
      f32x8 alu10 = (alu8+((alu9+-12582912.0f)*-1.0f));
      i32x8 alu11 = (((i32x8)alu9)+-1262485504);
      i32x8 alu12 = (alu11>>1);
      acc0 = (val3+select_f32x8(alu6, (0.0f-(f32x8){}), ((((alu10*((alu10*((alu10*((alu10*((alu10*((alu10*0.00015475194959435612f)+0.0013400273164734244f))+0.009618008509278297f))+0.055503278970718384f))+0.24022650718688965f))+0.6931471824645996f))+1.0f)*((f32x8)((alu12+127)<<23)))*((f32x8)(((alu11+(alu12*-1))+127)<<23)))));
    }
    f32x8 val13 = acc0;
    float alu14 = across_add_f32x8_8(val13);
    data2[alu1] = alu14;
  }
}

// e_64_96: in0 tmp0 tmp1 out0
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

enum {e_64_96_steps = 64};
void e_64_96(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3, long first, long last) {
  for (int ridx8 = first; ridx8 < last; ridx8++) {
    long alu1 = ((long)ridx8);
    long alu2 = (alu1*96L);
    float val3 = data1[alu1];
    float alu4 = (val3*-1.0f);
    float val5 = data2[alu1];
    float alu6 = (1.0f/val5);
    for (int ridx3 = 0; ridx3 < 3; ridx3++) {
      long alu7 = (((long)ridx3)*32L);
      long alu8 = (alu2+alu7);
      long alu9 = (alu2+(alu7+8L));
      long alu10 = (alu2+(alu7+16L));
      long alu11 = (alu2+(alu7+24L));
      f32x8 val12 = *(f32x8u*)(data0+alu8);
      f32x8 val13 = *(f32x8u*)(data0+alu9);
      f32x8 val14 = *(f32x8u*)(data0+alu10);
      f32x8 val15 = *(f32x8u*)(data0+alu11);
      f32x8 alu16 = ((val12+alu4)*1.4426950408889634f);
      f32x8 alu17 = ((val13+alu4)*1.4426950408889634f);
      f32x8 alu18 = ((val14+alu4)*1.4426950408889634f);
      f32x8 alu19 = ((val15+alu4)*1.4426950408889634f);
      i32x8 alu20 = (alu16<-150.0f);
      i32x8 alu21 = (alu17<-150.0f);
      i32x8 alu22 = (alu18<-150.0f);
      i32x8 alu23 = (alu19<-150.0f);
      f32x8 alu24 = select_f32x8(alu20, (0.0f-(f32x8){}), alu16);
      f32x8 alu25 = select_f32x8(alu21, (0.0f-(f32x8){}), alu17);
      f32x8 alu26 = select_f32x8(alu22, (0.0f-(f32x8){}), alu18);
      f32x8 alu27 = select_f32x8(alu23, (0.0f-(f32x8){}), alu19);
      f32x8 alu28 = select_f32x8((129.0f<alu24), (129.0f-(f32x8){}), alu24);
      f32x8 alu29 = select_f32x8((129.0f<alu25), (129.0f-(f32x8){}), alu25);
      f32x8 alu30 = select_f32x8((129.0f<alu26), (129.0f-(f32x8){}), alu26);
      f32x8 alu31 = select_f32x8((129.0f<alu27), (129.0f-(f32x8){}), alu27);
      f32x8 alu32 = (alu28+12582912.0f);
      f32x8 alu33 = (alu29+12582912.0f);
      f32x8 alu34 = (alu30+12582912.0f);
      f32x8 alu35 = (alu31+12582912.0f);
      f32x8 alu36 = ((alu32+-12582912.0f)*-1.0f);
      i32x8 alu37 = (((i32x8)alu32)+-1262485504);
      f32x8 alu38 = ((alu33+-12582912.0f)*-1.0f);
      i32x8 alu39 = (((i32x8)alu33)+-1262485504);
      f32x8 alu40 = ((alu34+-12582912.0f)*-1.0f);
      i32x8 alu41 = (((i32x8)alu34)+-1262485504);
      f32x8 alu42 = ((alu35+-12582912.0f)*-1.0f);
      i32x8 alu43 = (((i32x8)alu35)+-1262485504);
      f32x8 alu44 = (alu28+alu36);
      i32x8 alu45 = (alu37>>1);
      f32x8 alu46 = (alu29+alu38);
      i32x8 alu47 = (alu39>>1);
      f32x8 alu48 = (alu30+alu40);
      i32x8 alu49 = (alu41>>1);
      f32x8 alu50 = (alu31+alu42);
      i32x8 alu51 = (alu43>>1);
      f32x8 alu52 = ((alu44*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu53 = ((f32x8)((alu45+127)<<23));
      f32x8 alu54 = ((f32x8)(((alu37+(alu45*-1))+127)<<23));
      f32x8 alu55 = ((alu46*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu56 = ((f32x8)((alu47+127)<<23));
      f32x8 alu57 = ((f32x8)(((alu39+(alu47*-1))+127)<<23));
      f32x8 alu58 = ((alu48*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu59 = ((f32x8)((alu49+127)<<23));
      f32x8 alu60 = ((f32x8)(((alu41+(alu49*-1))+127)<<23));
      f32x8 alu61 = ((alu50*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu62 = ((f32x8)((alu51+127)<<23));
      f32x8 alu63 = ((f32x8)(((alu43+(alu51*-1))+127)<<23));
      f32x8 alu64 = (alu44*((alu44*alu52)+0.009618008509278297f));
      f32x8 alu65 = (alu46*((alu46*alu55)+0.009618008509278297f));
      f32x8 alu66 = (alu48*((alu48*alu58)+0.009618008509278297f));
      f32x8 alu67 = (alu50*((alu50*alu61)+0.009618008509278297f));
      f32x8 alu68 = (alu44*(alu64+0.055503278970718384f));
      f32x8 alu69 = (alu46*(alu65+0.055503278970718384f));
      f32x8 alu70 = (alu48*(alu66+0.055503278970718384f));
      f32x8 alu71 = (alu50*(alu67+0.055503278970718384f));
      f32x8 alu72 = (alu44*(alu68+0.24022650718688965f));
      f32x8 alu73 = (alu46*(alu69+0.24022650718688965f));
      f32x8 alu74 = (alu48*(alu70+0.24022650718688965f));
      f32x8 alu75 = (alu50*(alu71+0.24022650718688965f));
      f32x8 alu76 = (alu44*(alu72+0.6931471824645996f));
      f32x8 alu77 = (alu46*(alu73+0.6931471824645996f));
      f32x8 alu78 = (alu48*(alu74+0.6931471824645996f));
      f32x8 alu79 = (alu50*(alu75+0.6931471824645996f));
      f32x8 alu80 = ((alu76+1.0f)*alu53);
      f32x8 alu81 = ((alu77+1.0f)*alu56);
      f32x8 alu82 = ((alu78+1.0f)*alu59);
      f32x8 alu83 = ((alu79+1.0f)*alu62);
      f32x8 alu84 = (select_f32x8(alu20, (0.0f-(f32x8){}), (alu80*alu54))*alu6);
      f32x8 alu85 = (select_f32x8(alu21, (0.0f-(f32x8){}), (alu81*alu57))*alu6);
      f32x8 alu86 = (select_f32x8(alu22, (0.0f-(f32x8){}), (alu82*alu60))*alu6);
      f32x8 alu87 = (select_f32x8(alu23, (0.0f-(f32x8){}), (alu83*alu63))*alu6);
      *(f32x8u*)(data3+alu8) = alu84;
      *(f32x8u*)(data3+alu9) = alu85;
      *(f32x8u*)(data3+alu10) = alu86;
      *(f32x8u*)(data3+alu11) = alu87;
    }
  }
}
